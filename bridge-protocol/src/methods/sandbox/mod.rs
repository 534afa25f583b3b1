//! `sandbox/*`: shells and files of a workspace, for agents. A daemon that was started with
//! `--sandbox DIR` serves them itself.
//!
//! [`commands`] run in [`shells`]; [`files`] are read and changed without one. Times are in milliseconds,
//! offsets count the bytes of a shell's log from its birth, and bytes that need not be text travel
//! in base64.

pub mod commands;
pub mod files;
pub mod shells;

use super::{MethodType, methods};

/// Every method, by name.
pub const ALL: [&str; 24] = [
    shells::CreateShell::NAME,
    shells::ListShells::NAME,
    commands::RunCommand::NAME,
    commands::WaitForCommand::NAME,
    commands::ReadOutput::NAME,
    shells::SendInput::NAME,
    shells::SendKeys::NAME,
    shells::SendSignal::NAME,
    shells::ResizeShell::NAME,
    shells::CloseShell::NAME,
    shells::AttachCommand::NAME,
    files::ReadFile::NAME,
    files::WriteFile::NAME,
    files::EditFile::NAME,
    files::UndoEdit::NAME,
    files::ListFiles::NAME,
    files::Glob::NAME,
    files::Grep::NAME,
    files::Stat::NAME,
    files::MakeDirectory::NAME,
    files::RemoveDirectory::NAME,
    files::Remove::NAME,
    files::Move::NAME,
    files::Copy::NAME,
];

const fn yes() -> bool {
    true
}

#[allow(clippy::trivially_copy_pass_by_ref)] // The signature that serde asks for.
const fn is_yes(value: &bool) -> bool {
    *value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_have_the_prefix() {
        for name in ALL {
            assert!(crate::method::is_sandbox(name), "{name}");
            assert_eq!(ALL.iter().filter(|other| **other == name).count(), 1, "{name}");
        }
    }

    #[test]
    fn what_is_usual_need_not_be_said() {
        use serde_json::{from_value, json, to_value};

        let write: files::WriteFileParams = from_value(json!({"path": "a"})).unwrap();
        assert!(write.replace);
        assert_eq!(to_value(&write).unwrap(), json!({"path": "a"}));
        let keep: files::WriteFileParams = from_value(json!({"replace": false})).unwrap();
        assert_eq!(to_value(&keep).unwrap()["replace"], false);
        let list: files::ListFilesParams = from_value(json!({})).unwrap();
        assert_eq!(list.path, ".");
        assert_eq!(shells::ShellName::default().to_string(), "main");
        let output = |lost: u64| -> commands::CommandOutput {
            from_value(json!({"text": "", "start": 0, "end": 0, "lost": lost})).unwrap()
        };
        assert_eq!(to_value(output(0)).unwrap().get("lost"), None);
        assert_eq!(to_value(output(7)).unwrap()["lost"], 7);
    }
}
