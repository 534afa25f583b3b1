//! How long a request may take, from the caller's `timeout` and the defaults of the method.

use std::sync::LazyLock;
use std::time::Duration;

use memchr::memmem::Finder;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::message::Dialect;
use crate::method::{default_timeout, longest_timeout};
use crate::text::brief;

/// The members of `params` that the daemon itself reads: the timeout and the choice of a runtime.
#[derive(Debug, Default, Deserialize)]
pub struct RoutingParams {
    /// Timeout in milliseconds, with fractions. 0 or absent means the default of the method.
    #[serde(default)]
    pub timeout: Option<f64>,
    /// Id of the runtime for this request, as in `runtime/list`.
    #[serde(default, rename = "runtimeId")]
    pub runtime_id: Option<String>,
    /// Path in the folders of the runtime for this request. A value that is no string has no meaning here and is
    /// left to the host.
    #[serde(default, deserialize_with = "string_or_none")]
    pub path: Option<String>,
}

/// Every text with a routing member contains one of these byte sequences; names may be written with escapes.
static NAMES: LazyLock<[Finder<'static>; 4]> =
    LazyLock::new(|| [r#""timeout""#, r#""runtimeId""#, r#""path""#, r"\u"].map(Finder::new));

impl RoutingParams {
    /// Reads the routing members. Params without any of the names are not parsed, because a search for the names
    /// is much cheaper than parsing a large payload. The error is a sentence for the caller.
    pub fn read(params: Option<&RawValue>) -> Result<Self, String> {
        let Some(text) = params.map(RawValue::get) else { return Ok(Self::default()) };
        if !text.starts_with('{') || !NAMES.iter().any(|name| name.find(text.as_bytes()).is_some())
        {
            return Ok(Self::default());
        }
        let routing: Self = serde_json::from_str(text).map_err(|error| {
            let error = error.to_string();
            format!(
                "\"timeout\" must be a number of milliseconds and \"runtimeId\" a string: {}",
                brief(&error)
            )
        })?;
        match routing.timeout {
            Some(timeout) if timeout < 0.0 => Err("\"timeout\" must not be negative".into()),
            _ => Ok(routing),
        }
    }
}

/// Reads a string, and any value of another type as `None`.
fn string_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let value = <&RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(value.get()).ok())
}

/// How long a request may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowance {
    /// The caller chose the timeout: a hard limit.
    Chosen(Duration),
    /// The default of the method. Progress shows that the host is working, and restarts the time.
    Default(Duration),
}

impl Allowance {
    /// The allowance for a request with this `timeout` for this method.
    pub fn new(timeout: Option<f64>, method: &str) -> Self {
        match timeout {
            Some(ms) if ms > 0.0 => {
                let ms = ms.min(longest_timeout(method).as_secs_f64() * 1000.0);
                Self::Chosen(Duration::from_secs_f64(ms / 1000.0))
            }
            _ => Self::Default(default_timeout(method)),
        }
    }

    /// The length of time.
    pub fn duration(self) -> Duration {
        match self {
            Self::Chosen(duration) | Self::Default(duration) => duration,
        }
    }

    /// When the daemon answers with *Timeout*. Callers of the bridge dialect run a timeout of the same length
    /// themselves, so the daemon answers them a little earlier: its reason arrives before their own timeout.
    pub fn answer_after(self, dialect: Dialect) -> Duration {
        let whole = self.duration();
        match dialect {
            Dialect::JsonRpc => whole,
            Dialect::Bridge => {
                let early = (whole / 20).clamp(Duration::from_millis(100), Duration::from_secs(1));
                whole.saturating_sub(early).max(whole / 2)
            }
        }
    }

    /// Time limit for a host that can return a partial result at a timeout, such as the output of a command so
    /// far. Its answer then arrives before the daemon answers with *Timeout*, in either dialect. `None` if the
    /// caller has not chosen a timeout.
    pub fn host_limit(self) -> Option<Duration> {
        let Self::Chosen(whole) = self else { return None };
        let early = (whole / 10).clamp(Duration::from_millis(500), Duration::from_secs(2));
        Some(whole.saturating_sub(early).max(whole / 3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{TIMEOUT_MAX, TOOL_TIMEOUT_MAX};

    fn read(params: &str) -> Result<RoutingParams, String> {
        RoutingParams::read(Some(serde_json::from_str::<&RawValue>(params).unwrap()))
    }

    #[test]
    fn timeouts_are_milliseconds_with_fractions() {
        assert_eq!(read(r#"{"timeout":700.5}"#).unwrap().timeout, Some(700.5));
        assert_eq!(read(r#"{"\u0074imeout":5}"#).unwrap().timeout, Some(5.0));
        assert_eq!(read(r#"{"message":"the \"timeout\" word"}"#).unwrap().timeout, None);
        assert_eq!(read(r#"{"timeout":null}"#).unwrap().timeout, None);
        assert_eq!(read(r#"{"timeout":0}"#).unwrap().timeout, Some(0.0));
        assert_eq!(read(r#"["timeout"]"#).unwrap().timeout, None);
        assert_eq!(read(r#"{"runtimeId":"w1"}"#).unwrap().runtime_id.as_deref(), Some("w1"));
        assert_eq!(read(r#"{"path":"/w/a"}"#).unwrap().path.as_deref(), Some("/w/a"));
        assert_eq!(read(r#"{"p\u0061th":"/w"}"#).unwrap().path.as_deref(), Some("/w"));
        for other in [r#"{"path":5}"#, r#"{"path":null}"#, r#"{"path":["/w"]}"#, r#"{"paths":"/"}"#]
        {
            assert_eq!(read(other).unwrap().path, None, "{other}");
        }
        for bad in [
            r#"{"path":"/a","path":"/b"}"#,
            r#"{"timeout":"1"}"#,
            r#"{"timeout":-1}"#,
            r#"{"timeout":{}}"#,
            r#"{"timeout":1,"timeout":2}"#,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn allowance_is_the_callers_or_the_methods_and_bounded() {
        let ms = Duration::from_millis;
        assert_eq!(
            Allowance::new(Some(700.5), "x"),
            Allowance::Chosen(Duration::from_micros(700_500))
        );
        assert_eq!(Allowance::new(Some(0.0), "execute_command"), Allowance::Default(ms(10_000)));
        assert_eq!(Allowance::new(None, "vscode/chat"), Allowance::Default(ms(30_000)));
        assert_eq!(Allowance::new(Some(1e300), "x"), Allowance::Chosen(TIMEOUT_MAX));
    }

    #[test]
    fn commands_may_run_for_a_day_by_default() {
        let hour = Duration::from_secs(3600);
        assert_eq!(Allowance::new(Some(3_600_000.0), "file/read"), Allowance::Chosen(hour));
        let longest = Allowance::Default(TOOL_TIMEOUT_MAX);
        assert_eq!(Allowance::new(None, "shell/run"), longest);
        assert_eq!(Allowance::new(None, "shell/wait"), longest);
        assert_eq!(Allowance::new(None, "action/execute"), longest);
        let short = Allowance::Default(Duration::from_secs(120));
        assert_eq!(Allowance::new(None, "file/read"), short);
    }

    #[test]
    fn bridge_dialect_callers_are_answered_a_little_early() {
        let after = |ms: u64| {
            Allowance::Chosen(Duration::from_millis(ms)).answer_after(Dialect::Bridge).as_millis()
        };
        assert_eq!(after(30_000), 29_000);
        assert_eq!(after(10_000), 9_500);
        assert_eq!(after(1_000), 900);
        assert_eq!(after(150), 75);
        assert_eq!(after(600_000), 599_000);
        let whole = Allowance::Chosen(Duration::from_millis(1_000));
        assert_eq!(whole.answer_after(Dialect::JsonRpc).as_millis(), 1_000);
    }

    #[test]
    fn the_limit_of_a_host_ends_before_the_daemon_answers() {
        for ms in [1, 150, 300, 1_000, 10_000, 600_000] {
            let whole = Allowance::Chosen(Duration::from_millis(ms));
            let limit = whole.host_limit().unwrap();
            assert!(!limit.is_zero() && limit < whole.answer_after(Dialect::Bridge), "{ms}");
        }
        let minute = Allowance::Chosen(Duration::from_secs(60));
        assert_eq!(minute.host_limit(), Some(Duration::from_secs(58)));
        assert_eq!(Allowance::new(None, "action/execute").host_limit(), None);
    }
}
