//! Looks at the kernel's tables on behalf of the owner.

use super::Driver;
use crate::{
    input,
    launch::SecretPipe,
    owner::{Look, Reads, Sight},
};

impl Driver {
    pub(super) fn look(&self, look: Look) -> Sight {
        match look {
            Look::Foreground => {
                let stat = self.shell.stat();
                Sight::Foreground {
                    is_taken: stat.is_some_and(|stat| stat.foreground != stat.group),
                }
            }
            Look::Shell => Sight::Shell { reads: self.reads() },
            Look::Starting => {
                let shell = self.launcher.shell(self.owner.entry().leader);
                Sight::Starting { is_at_prompt: shell.is_some_and(input::shell_edits_line) }
            }
        }
    }

    fn reads(&self) -> Reads {
        if input::shell_reads_plain_lines(self.shell) {
            return Reads::PlainLines;
        }
        let is_at_prompt = input::shell_edits_line(self.shell)
            && SecretPipe::is_ready(self.shell, &self.launcher.dir.pipe());
        if is_at_prompt { Reads::AtPrompt } else { Reads::Nothing }
    }
}
