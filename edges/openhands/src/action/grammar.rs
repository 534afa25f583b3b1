//! Decides how many commands a text has, without trusting the text.
//!
//! A helper process parses it, with limits of time and memory. If that fails in any way, the text is
//! left to bash as one command.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use sandbox_worker::{Job, Worker};
use tokio::{io::AsyncWriteExt as _, process::Command, time};

use super::commands::{Commands, parse};

/// Longer texts are left to bash.
const TEXT_BYTES: usize = 1 << 20;
/// How long a helper may parse a text, or bash may check it.
const TIME: Duration = Duration::from_secs(10);
/// The characters besides letters, digits and spaces that mean nothing to the grammar.
const PLAIN: &str = "_./-=,:@%+^";
/// The words that have a meaning in the grammar.
const RESERVED: [&str; 16] = [
    "if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for",
    "select", "function", "time", "coproc",
];

/// Decides how many commands a text has.
#[derive(Debug, Clone)]
pub struct Grammar {
    /// Checks whether a command is complete.
    bash: PathBuf,
    parser: Parser,
}

#[derive(Debug, Clone)]
enum Parser {
    Helper(Worker),
    /// For tests of other parts, which have no program with helpers.
    #[cfg(test)]
    Here,
}

/// Parses a text.
#[derive(Debug)]
pub struct GrammarJob;

impl Job for GrammarJob {
    type Request = String;
    type Answer = Commands;

    const NAME: &'static str = "grammar";
    const MEMORY: Option<u64> = Some(1 << 30);
    /// Several commands are as long as the text; JSON may escape each character.
    const ANSWER_BYTES: u64 = 8 * TEXT_BYTES as u64;

    fn carry_out(text: String) -> Commands {
        parse(&text)
    }
}

impl Grammar {
    /// Parses with helpers of this worker, whose program must know [`GrammarJob`]. `bash` checks
    /// whether a command is complete.
    pub fn new(bash: impl Into<PathBuf>, worker: Worker) -> Self {
        Self { bash: bash.into(), parser: Parser::Helper(worker) }
    }

    #[cfg(test)]
    pub(super) fn in_process(bash: impl Into<PathBuf>) -> Self {
        Self { bash: bash.into(), parser: Parser::Here }
    }

    /// The commands of a text. If it seems unfinished, bash is asked: an agent that is asked to
    /// finish a complete command would be stuck.
    pub(super) async fn commands(&self, text: &str) -> Commands {
        if text.len() > TEXT_BYTES || is_plain(text) {
            return Commands::One;
        }
        match self.parse(text).await {
            Commands::Unfinished if !bash_complains(&self.bash, text).await => Commands::One,
            commands => commands,
        }
    }

    async fn parse(&self, text: &str) -> Commands {
        match &self.parser {
            Parser::Helper(worker) => {
                let parsed = worker.run::<GrammarJob>(&text.to_owned(), TIME).await;
                parsed.unwrap_or_else(|error| {
                    tracing::warn!(%error, "a text cannot be parsed, and is left to bash");
                    Commands::One
                })
            }
            #[cfg(test)]
            Parser::Here => parse(text),
        }
    }
}

/// Whether a text is one command at first sight, as most are. Then no helper is needed.
fn is_plain(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == ' ' || PLAIN.contains(c);
    let mut words = text.split_whitespace().peekable();
    words.peek().is_some()
        && text.chars().all(is_plain)
        && words.all(|word| !RESERVED.contains(&word))
}

/// Lets bash check the syntax of a text without running it.
async fn bash_complains(bash: &Path, text: &str) -> bool {
    let mut command = Command::new(bash);
    command.arg("-n").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let Ok(mut child) = command.kill_on_drop(true).spawn() else { return true };
    let input = child.stdin.take();
    let write = async {
        if let Some(mut input) = input {
            // If bash does not read all of its input, it has already reported an error.
            let _ = input.write_all(text.as_bytes()).await;
        }
    };
    let checking = async { tokio::join!(child.wait_with_output(), write).0 };
    // A text that bash cannot check in time is left to the bash of the shell.
    let Ok(output) = time::timeout(TIME, checking).await else { return false };
    output.is_ok_and(|output| !output.status.success() || !output.stderr.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn bash_has_the_last_word() {
        let bash = Path::new("bash");
        assert!(bash_complains(bash, "cat <<EOF\nx").await);
        assert!(bash_complains(bash, "echo 'a").await);
        assert!(!bash_complains(bash, "[[ $x =~ ^(a|b)$ ]] && echo ${x//\\'/}").await);
        let grammar = Grammar::in_process(bash);
        assert_eq!(grammar.commands("cat <<EOF").await, Commands::Unfinished);
        assert_eq!(grammar.commands("echo a\necho b").await, parse("echo a\necho b"));
    }

    #[test]
    fn a_plain_text_is_one_command_for_the_parser_too() {
        for text in ["ls", "git log -n 3 --format=%H", "A=1 make -j2 a/b.o", "echo in", "exit"] {
            assert!(is_plain(text), "{text:?}");
            assert_eq!(parse(text), Commands::One, "{text:?}");
        }
        for text in ["", " ", "# c", "if true", "a\nb", "a &&", "echo 'a", "time", "{", "a\\", "ä"]
        {
            assert!(!is_plain(text), "{text:?}");
        }
    }

    #[tokio::test]
    async fn without_a_helper_a_text_is_left_to_bash() {
        let grammar = Grammar::new("bash", Worker::new("/no/such/program"));
        assert_eq!(grammar.commands("a\nb").await, Commands::One);
        assert_eq!(grammar.commands(&"a\n".repeat(TEXT_BYTES)).await, Commands::One);
    }
}
