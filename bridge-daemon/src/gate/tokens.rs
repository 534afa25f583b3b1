//! The tokens of a session, and what each of them allows.

use std::sync::{Mutex, MutexGuard};

use bridge_protocol::{ErrorKind, Secret, WireError};

use crate::broker::Grant;

/// Maximum number of tokens of a session. One more is an error, because every new connection is compared with each.
const TOKENS: usize = 256;

/// All tokens that the gate accepts. Tokens can be added during the session, and end with it.
#[derive(Debug, Default)]
pub struct Tokens(Mutex<Vec<(Secret, Grant)>>);

impl Tokens {
    /// Adds a new token.
    pub fn add(&self, secret: Secret, grant: Grant) -> Result<(), WireError> {
        let mut tokens = self.lock();
        if tokens.len() == TOKENS {
            let reason = format!("this session already has {TOKENS} tokens, which is the limit");
            return Err(ErrorKind::NoSpace.error(reason));
        }
        tokens.push((secret, grant));
        Ok(())
    }

    /// The grant of the token that a connection has shown. The text is compared with every token in constant time,
    /// also after a match, so that the time reveals nothing.
    pub fn grant(&self, presented: Option<&str>) -> Option<Grant> {
        let tokens = self.lock();
        let mut found = None;
        for (secret, grant) in &*tokens {
            if secret.matches(presented) {
                found = Some(grant);
            }
        }
        found.cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Secret, Grant)>> {
        self.0.lock().expect("no holder of this lock panics")
    }
}

#[cfg(test)]
mod tests {
    use bridge_protocol::Rights;

    use super::*;

    fn secret(number: u8) -> Secret {
        Secret::from_random([number; 32])
    }

    #[test]
    fn each_token_allows_its_own_grant_and_no_other_text_does() {
        let tokens = Tokens::default();
        let read = Grant::Client("read".parse().unwrap());
        tokens.add(secret(1), Grant::Client(Rights::ALL)).unwrap();
        tokens.add(secret(2), read.clone()).unwrap();
        assert_eq!(tokens.grant(Some(secret(1).expose())), Some(Grant::Client(Rights::ALL)));
        assert_eq!(tokens.grant(Some(secret(2).expose())), Some(read));
        for wrong in [None, Some(""), Some("02"), Some(secret(3).expose())] {
            assert_eq!(tokens.grant(wrong), None);
        }
    }

    #[test]
    fn there_is_a_bound() {
        let tokens = Tokens::default();
        for _ in 0..TOKENS {
            tokens.add(secret(1), Grant::Client(Rights::NONE)).unwrap();
        }
        let error = tokens.add(secret(2), Grant::Client(Rights::ALL)).unwrap_err();
        assert_eq!(error.code(), ErrorKind::NoSpace.code());
        assert_eq!(tokens.grant(Some(secret(2).expose())), None);
    }
}
