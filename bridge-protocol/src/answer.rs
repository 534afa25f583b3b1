//! Reads the params of a call by the type of its method, and prints the result. Daemon, hosts and edges share it, so
//! that their errors have the same words and none repeats a long text of its caller.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};

use crate::methods::MethodType;
use crate::text::{brief, shortened};
use crate::{ErrorKind, WireError};

/// The result of a call as text, or its error.
pub type Answer = Result<Box<RawValue>, WireError>;

/// Most characters of a parser's error that a message quotes. serde repeats the value that it refuses, and says at
/// the end what it expected.
const DETAIL_CHARS: usize = 300;

/// Parses the params of a method.
pub fn read_params<M: MethodType>(params: Option<&RawValue>) -> Result<M::Params, WireError> {
    read_params_as(M::NAME, params)
}

/// Parses the params of a method that has no type of its own, such as a method that a host has defined itself.
pub fn read_params_as<T: DeserializeOwned>(
    method: &str,
    params: Option<&RawValue>,
) -> Result<T, WireError> {
    serde_json::from_str(params.map_or("{}", RawValue::get)).map_err(|error| {
        let (method, detail) = (brief(method), error.to_string());
        let detail = shortened(&detail, DETAIL_CHARS);
        ErrorKind::InvalidParams.error(format!("wrong params for {method}: {detail}"))
    })
}

/// Prints the result of a method.
pub fn print_result<M: MethodType>(result: &M::Result) -> Answer {
    print_value(result)
}

/// Prints a result or a piece of progress that has no method type.
pub fn print_value(value: &impl Serialize) -> Answer {
    to_raw_value(value).map_err(|error| {
        ErrorKind::InternalError.error(format!("the host cannot print its answer: {error}"))
    })
}

/// Refuses an empty parameter.
pub fn required(value: &str, name: &str) -> Result<(), WireError> {
    match value.is_empty() {
        true => Err(ErrorKind::InvalidParams.error(format!("Missing {name} parameter"))),
        false => Ok(()),
    }
}

/// The error for a method that nobody serves.
pub fn unknown_method(method: &str) -> WireError {
    ErrorKind::MethodNotFound.error(format!("Unknown request type: {}", brief(method)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::methods::shell::Signal;

    #[test]
    fn wrong_params_are_not_repeated_at_length() {
        let read = |signal: &str| {
            let params = to_raw_value(&serde_json::json!({"signal": signal})).unwrap();
            read_params::<Signal>(Some(&params)).unwrap_err().message().to_owned()
        };
        let short = read("x");
        assert!(short.starts_with("wrong params for shell/signal: unknown variant `x`"), "{short}");
        let long = read(&"x".repeat(1 << 20));
        assert!(long.chars().count() < 400, "{}", long.len());
        assert!(long.contains("expected one of"), "{long}");
    }

    #[test]
    fn a_missing_value_is_named() {
        assert!(required("x", "url").is_ok());
        assert_eq!(required("", "url").unwrap_err().message(), "Missing url parameter");
    }
}
