//! Random secrets and session ids.

use anyhow::Context;
use bridge_protocol::{Secret, SessionId};
use rand::TryRng;
use rand::rngs::SysRng;

/// A secret from the random numbers of the operating system. There is no weaker fallback.
pub fn random_secret() -> anyhow::Result<Secret> {
    let mut bits = [0; 32];
    SysRng.try_fill_bytes(&mut bits).context("the system gives no random numbers")?;
    Ok(Secret::from_random(bits))
}

/// A random id, for a session that the user has not named.
pub fn random_session() -> anyhow::Result<SessionId> {
    let text = random_secret()?.expose()[..16].to_owned();
    Ok(text.try_into()?)
}
