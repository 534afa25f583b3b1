//! `token …`: makes a token for a client with fewer rights, or for a host.

use std::path::Path;

use bridge_client::error::without_number;
use bridge_client::{Client, Endpoint, Options};
use bridge_protocol::methods::{CreateToken, CreateTokenParams, MethodType};

use super::{Context, answer, typed};
use crate::cli;
use crate::failure::Failure;
use crate::output::Style;

pub async fn run(mut context: Context, arguments: cli::Token) -> Result<(), Failure> {
    let (endpoint, params) = match arguments.rights {
        Some(rights) => (context.endpoint()?, CreateTokenParams::Client { rights }),
        None => {
            let endpoint = Endpoint::find_for_host(context.session.as_ref(), context.environment)?;
            let cli::Token { runtime: runtime_ids, tools, .. } = arguments;
            (endpoint, CreateTokenParams::Host { runtime_ids, tools })
        }
    };
    let client = Client::connect(endpoint, Options::default()).await?;
    let params = serde_json::value::to_raw_value(&params).expect("our own types always print");
    let result = answer(client.call_raw(CreateToken::NAME, Some(params), context.timeout)).await;
    client.close().await;
    let result = result?;
    let token = typed::<CreateToken>(&result)?.token;
    match (&arguments.output, context.output.style) {
        (Some(file), _) => write_private(file, token.expose()),
        (None, Style::Json) => context.output.json(&result).await,
        (None, Style::Terminal | Style::Pipe) => context.output.line(token.expose()).await,
    }
}

/// Writes the token to a file that must not exist yet: an existing file could be readable for others, or be a link.
fn write_private(path: &Path, token: &str) -> Result<(), Failure> {
    let written = private_files::create_new(path, format!("{token}\n").as_bytes());
    written.map_err(|error| Failure::File {
        path: path.to_owned(),
        reason: format!("{}; name a new file in a directory of yours", without_number(&error)),
    })
}
