//! `vscode/executeCommand` without an editor: refused, unless `--allow-command` maps the command to a program.

use std::process::Stdio;
use std::str::FromStr;

use bridge_protocol::methods::{ExecuteCommandParams, ExecuteCommandResult};
use bridge_protocol::{ErrorKind, WireError};
use serde_json::Value;

use super::chat::ProgramRun;

/// An editor command that callers may run, and the shell command that is run for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedCommand {
    name: String,
    program: String,
}

impl FromStr for AllowedCommand {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, program)) if !name.is_empty() && !program.is_empty() => {
                Ok(Self { name: name.to_owned(), program: program.to_owned() })
            }
            _ => Err("must be NAME=PROGRAM".to_owned()),
        }
    }
}

/// Finds the mapping of an editor command. The error says how to add one.
pub fn find<'a>(
    allowed: &'a [AllowedCommand],
    name: &str,
) -> Result<&'a AllowedCommand, WireError> {
    allowed.iter().find(|command| command.name == name).ok_or_else(|| {
        let reason = format!(
            "there is no editor to run {name:?}: map it to a program with --allow-command {name}=PROGRAM, \
             or run with --host editor"
        );
        ErrorKind::NotAllowed.error(reason)
    })
}

/// Runs the program that an editor command is mapped to. The result is its output, parsed if it is JSON, else as text.
pub async fn execute(
    command: &AllowedCommand,
    params: &ExecuteCommandParams,
) -> Result<ExecuteCommandResult, WireError> {
    let mut shell = tokio::process::Command::new("sh");
    shell.arg("-c").arg(format!("{} \"$@\"", command.program)).arg(&command.name);
    shell.args(params.args.iter().map(|arg| match arg {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }));
    shell.stdin(Stdio::null());
    let output = ProgramRun::start(&mut shell, &command.name)?.collect(None, |_| {}).await?;
    let result = match output.is_empty() {
        true => None,
        false => Some(serde_json::from_str(&output).unwrap_or(Value::String(output))),
    };
    Ok(ExecuteCommandResult { result })
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn run(map: &str, command: &str, args: Vec<Value>) -> Result<Option<Value>, WireError> {
        let params = ExecuteCommandParams { command: command.into(), args, timeout: None };
        let allowed = [map.parse().unwrap()];
        execute(find(&allowed, command)?, &params).await.map(|result| result.result)
    }

    #[tokio::test]
    async fn mapped_commands_run_with_their_arguments() {
        let args = vec!["a b".into(), 5.into(), serde_json::json!({"x": "$HOME"})];
        let printed = run("show=printf '%s|'", "show", args).await.unwrap();
        assert_eq!(printed, Some(Value::String(r#"a b|5|{"x":"$HOME"}|"#.into())));
        assert_eq!(
            run("j=echo", "j", vec!["[1]".into()]).await.unwrap(),
            Some(serde_json::json!([1]))
        );
        assert_eq!(run("t=true", "t", vec![]).await.unwrap(), None);
    }

    #[tokio::test]
    async fn other_commands_are_refused_and_failures_told() {
        let refused = run("a=true", "b", vec![]).await.unwrap_err();
        assert_eq!(refused.code(), ErrorKind::NotAllowed.code());
        assert!(refused.message().contains("--allow-command b="));
        let failed = run("f=echo oops >&2; exit 3;", "f", vec![]).await.unwrap_err();
        assert!(
            failed.message().contains("exit code 3") && failed.message().contains("oops"),
            "{failed}"
        );
    }

    #[test]
    fn mappings_need_both_sides() {
        for text in ["x", "=x", "x="] {
            assert!(text.parse::<AllowedCommand>().is_err());
        }
        assert_eq!("a=b=c".parse::<AllowedCommand>().unwrap().program, "b=c");
    }
}
