//! `call METHOD …`: calls any method with any parameters and prints the result.

use bridge_protocol::Method;

use super::{Context, answer};
use crate::cli::Call;
use crate::failure::Failure;
use crate::params;

pub async fn run(mut context: Context, arguments: Call) -> Result<(), Failure> {
    let params = params::from_arguments(&arguments.params, params::read_stdin)?;
    let method = canonical(&arguments.method);
    let client = context.client().await?;
    let result = answer(client.call_raw(method, params, context.timeout)).await;
    client.close().await;
    context.output.json(&result?).await
}

/// Resolves an alias. The daemon does so, too, but the default timeout of the method is needed here.
fn canonical(name: &str) -> &str {
    match Method::from_name(name) {
        Some(method) => method.name(),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_are_resolved_and_other_names_are_left_alone() {
        assert_eq!(canonical("show_message"), "vscode/showMessage");
        assert_eq!(canonical("vscode/execute_command"), "vscode/executeCommand");
        assert_eq!(canonical("chat"), "vscode/chat");
        assert_eq!(canonical("bridge/status"), "bridge/status");
        assert_eq!(canonical("my/own"), "my/own");
    }
}
