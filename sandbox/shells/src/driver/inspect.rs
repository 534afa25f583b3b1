//! Inspects terminals and `/proc` for the owner.

use super::Driver;
use crate::{
    input,
    launch::NoncePipe,
    owner::{Finding, Inspection, ReadMode},
};

impl Driver {
    pub(super) fn inspect(&mut self, inspection: Inspection) -> Finding {
        match inspection {
            Inspection::Foreground => {
                let stat = self.shell.stat();
                Finding::Foreground {
                    is_taken: stat.is_some_and(|stat| stat.foreground != stat.group),
                }
            }
            Inspection::Shell => Finding::Shell { mode: self.read_mode() },
            Inspection::Starting => {
                let shell = self.setup.shell(self.owner.entry().leader);
                Finding::Starting { is_at_prompt: shell.is_some_and(input::shell_edits_line) }
            }
        }
    }

    fn read_mode(&mut self) -> ReadMode {
        // A key that is still on its way must not be pressed again: the second one would arrive while the command
        // runs, and the terminal would echo it into the output.
        if self.typist.has_undelivered_keys() {
            return ReadMode::Nothing;
        }
        if input::shell_reads_plain_lines(self.shell) {
            return ReadMode::PlainLines;
        }
        let is_at_prompt = input::shell_edits_line(self.shell)
            && NoncePipe::is_ready(self.shell, &self.setup.dir.pipe());
        if is_at_prompt { ReadMode::AtPrompt } else { ReadMode::Nothing }
    }
}
