//! `execute-command COMMAND …`: prints the return value of an editor command, text as text, anything else as JSON. Prints
//! nothing if there is none.

use bridge_protocol::Method;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Context, answer};
use crate::cli::ExecuteCommand;
use crate::failure::Failure;
use crate::output::Style;
use crate::params;

/// The params as in `bridge-protocol`, but with raw values, so that arguments and result stay unchanged.
#[derive(Serialize)]
struct Params {
    command: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    args: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Returned<'r> {
    #[serde(borrow, default)]
    result: Option<&'r RawValue>,
}

pub async fn run(mut context: Context, arguments: ExecuteCommand) -> Result<(), Failure> {
    let args = arguments.args.iter().map(|text| params::value(text)).collect();
    let params = Params { command: arguments.command, args };
    let params = context.route.added_to(&params);
    let client = context.client().await?;
    let method = Method::ExecuteCommand.name();
    let result = answer(client.call_raw(method, Some(params), context.timeout)).await;
    client.close().await;
    let result = result?;
    if context.output.style == Style::Json {
        return context.output.json(&result).await;
    }
    // If the result is not an object, there is nothing to print.
    let returned = serde_json::from_str(result.get()).unwrap_or(Returned { result: None });
    match returned.result {
        None => Ok(()),
        Some(value) => match serde_json::from_str::<String>(value.get()) {
            Ok(text) => context.output.line(&text).await,
            Err(_) => context.output.json(value).await,
        },
    }
}
