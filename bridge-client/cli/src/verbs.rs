//! Methods and params of the wire under the names that a person types here.

use bridge_protocol::methods;

/// Verbs that are not the name of their method.
const UNIX_NAMES: [(&str, &str); 5] = [
    ("file/makeDirectory", "mkdir"),
    ("file/removeDirectory", "rmdir"),
    ("file/remove", "rm"),
    ("file/move", "mv"),
    ("file/copy", "cp"),
];

/// Params that choose a runtime, and the flags for them.
const FLAGS: [(&str, &str); 2] =
    [("params.runtimeId", "--runtime ID"), ("params.path", "--in DIR")];

/// Replaces methods by subcommands, and params by flags, in the part of a message that says what to do: after the
/// first colon. The part before it may quote names of files, which can look like methods.
pub fn in_place_of_methods(message: &str) -> String {
    let Some((what, remedy)) = message.split_once(": ") else { return message.to_owned() };
    let remedy: String = remedy.split_inclusive(|c: char| !is_of_name(c)).map(replaced).collect();
    let remedy = FLAGS.iter().fold(remedy, |text, (param, flag)| text.replace(param, flag));
    format!("{what}: {remedy}")
}

/// Replaces a method by its subcommand. The word ends with one character that is not part of the name.
fn replaced(word: &str) -> String {
    let name = word.trim_end_matches(|c: char| !is_of_name(c));
    match subcommand(name) {
        Some(subcommand) => format!("`bridge-client {subcommand}`{}", &word[name.len()..]),
        None => word.to_owned(),
    }
}

fn subcommand(method: &str) -> Option<String> {
    let (family, verb) = method.split_once('/')?;
    let has_verbs = ["shell", "file", "cell", "page"].contains(&family);
    methods::find(method).filter(|_| has_verbs)?;
    let unix = UNIX_NAMES.iter().find(|(name, _)| *name == method);
    Some(format!("{family} {}", unix.map_or(verb, |(_, verb)| verb)))
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '/'
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn remedies_name_subcommands() {
        for (message, shown) in [
            (
                "there is no shell a: start it with shell/create, or see shell/list",
                "there is no shell a: start it with `bridge-client shell create`, or see `bridge-client shell list`",
            ),
            ("not empty: use file/remove", "not empty: use `bridge-client file rm`"),
            ("file/read does not exist", "file/read does not exist"),
            (
                "wrong: see shell/nonsense and vscode/chat",
                "wrong: see shell/nonsense and vscode/chat",
            ),
        ] {
            assert_eq!(in_place_of_methods(message), shown);
        }
    }

    #[test]
    fn every_tool_has_its_subcommand() {
        let cli = Cli::command();
        for family in ["shell", "file", "cell", "page"] {
            for method in methods::names_of(family) {
                let subcommand = subcommand(method).unwrap();
                let verb = subcommand.split_once(' ').unwrap().1;
                let group = cli.find_subcommand(family).unwrap();
                assert!(group.find_subcommand(verb).is_some(), "{method}: {subcommand}");
            }
        }
    }
}
