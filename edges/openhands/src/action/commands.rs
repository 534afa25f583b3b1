//! Decides whether a text is one command or several.
//!
//! Commands on separate lines are several: the first could end the shell or read the rest as its
//! input, and there would be one exit code for all of them. Commands that are joined by operators,
//! or that form one compound command, are one.
//!
//! The parser of the grammar panics on some texts, so this runs in a helper process; see
//! [`Grammar`](super::Grammar).

use brush_parser::{ParseError, ParserOptions, ast::SourceLocation as _, parse_tokens};
use serde::{Deserialize, Serialize};

use super::tokens::tokens;

/// How a shell would interpret a text.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Commands {
    /// Nothing but comments and blanks.
    None,
    /// One command. Also a text that cannot be parsed, or is nested too deeply to be parsed: bash
    /// decides.
    One,
    /// Several commands, each with the comments that follow it.
    Several(Vec<String>),
    /// An incomplete command: a quote, a heredoc or a compound command is still open.
    Unfinished,
}

pub(super) fn parse(text: &str) -> Commands {
    let text = text.trim();
    let tokens = match tokens(text) {
        Some(Ok(tokens)) => tokens,
        Some(Err(error)) if error.is_incomplete() => return Commands::Unfinished,
        Some(Err(_)) | None => return Commands::One,
    };
    let commands = match parse_tokens(&tokens, &ParserOptions::default()) {
        Ok(program) => program.complete_commands,
        Err(ParseError::ParsingAtEndOfInput) => return Commands::Unfinished,
        Err(_) => return Commands::One,
    };
    match commands.len() {
        0 => return Commands::None,
        1 => return Commands::One,
        _ => {}
    }
    // The first command includes the comments before it.
    let mut starts = vec![Some(0)];
    // The parser counts characters. Their byte offsets are found in one pass over the text.
    let mut places = text.char_indices().map(|(place, _)| place).enumerate();
    starts.extend(commands.iter().skip(1).map(|command| {
        let index = command.location()?.start.index;
        places.find(|&(number, _)| number >= index).map(|(_, place)| place)
    }));
    let piece = |number: usize| {
        let end = starts.get(number + 1).copied().unwrap_or(Some(text.len()));
        Some(text[starts[number]?..end?].trim().to_owned())
    };
    // The parser does not know the position of some commands; then its own printout is used.
    let piece = |(number, command): (usize, &brush_parser::ast::CompleteCommand)| {
        piece(number).unwrap_or_else(|| command.to_string())
    };
    Commands::Several(commands.iter().enumerate().map(piece).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let expected = expected.iter().map(|&piece| piece.to_owned()).collect();
        assert_eq!(parse(text), Commands::Several(expected), "{text:?}");
    }

    #[test]
    fn one_command_may_have_many_lines() {
        for text in [
            "ls",
            "a; b && c || d | e &",
            "for i in 1 2; do\n  echo $i\ndone",
            "if true; then\n  x\nelse\n  y\nfi",
            "while read -r line\ndo\n  echo \"$line\"\ndone < file",
            "case $x in\n  a) b ;;\n  *) c ;;\nesac",
            "f() {\n  echo\n}",
            "echo a \\\n  b",
            "echo 'a\nb'",
            "echo \"a\nb\"",
            "a &&\nb",
            "a |\nb",
            "(\na\nb\n)",
            "cat <<EOF\nline\n\nmore $x\nEOF",
            "cat <<'EOF' > file\n`not closed\n'nor this\nEOF",
            "cat <<-EOF\n\ta\n\tEOF",
            "x=$(\necho\n)",
            "python3 -c \"\nimport os\nprint(1)\n\"",
            "[[ a == b ]] &&\n  echo",
            "ls # comment\n# more",
            "# comment\nls",
            "echo 'ä\nö'",
        ] {
            assert_eq!(parse(text), Commands::One, "{text:?}");
        }
    }

    #[test]
    fn commands_on_lines_of_their_own_are_several() {
        check("a\nb", &["a", "b"]);
        check("a\n\n\nb\nc", &["a", "b", "c"]);
        check("cmd # c\n# more\nls", &["cmd # c\n# more", "ls"]);
        check("cat <<EOF\nx\nEOF\nls", &["cat <<EOF\nx\nEOF", "ls"]);
        check("sleep 1 &\nls", &["sleep 1 &", "ls"]);
        check("for i in 1; do\n a\ndone\nls", &["for i in 1; do\n a\ndone", "ls"]);
        check("echo 'ä\nö'\necho ü", &["echo 'ä\nö'", "echo ü"]);
        check("A=1\nB=2", &["A=1", "B=2"]);
        check("[[ a ]]\n((1))", &["[[ a ]]", "((1))"]);
        check("> file\nls", &["> file", "ls"]);
        check("ls\n> file", &["ls", "> file"]);
        check("# c\na\nb", &["# c\na", "b"]);
    }

    #[test]
    fn a_beginning_is_unfinished() {
        for text in [
            "echo 'a\nb",
            "echo \"a",
            "cat <<EOF",
            "cat <<EOF\nx",
            "echo `a\nb",
            "echo $(a",
            "if true\nthen",
            "for x in a b; do",
            "a &&",
            "a |",
            "{",
        ] {
            assert_eq!(parse(text), Commands::Unfinished, "{text:?}");
        }
    }

    #[test]
    fn what_cannot_be_parsed_is_one() {
        for text in [")\n(", "a ;; b"] {
            assert_eq!(parse(text), Commands::One, "{text:?}");
        }
    }

    #[test]
    fn blank_texts_and_comments_are_no_command() {
        for text in ["", "  ", "# only a comment", "# a\n# b\n"] {
            assert_eq!(parse(text), Commands::None, "{text:?}");
        }
    }
}
