//! Nothing that a program prints is accepted as a marker of the shell.

#![allow(clippy::unwrap_used, reason = "this is test code, also outside of test functions")]

use std::{
    fs,
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
};

use sandbox_test_support::{Home, finish, raw, run, test};

#[test]
fn printing_cannot_fake_a_result() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        // Everything that a command can learn about its own markers goes into files. Each file is then searched for
        // words that look like nonces, and each of them is printed as a marker.
        let forge = r#"
            forge() {
                local word seq
                for word in $(grep -aohE '[0-9a-f]{32,64}' "$@" 2>/dev/null | sort -u); do
                    for seq in {0..40}; do
                        printf '\e]7717;E;%s;%s;99;;u;h;/forged;\a' $seq $word
                        printf '\e]7717;S;%s;%s\a' $seq $word
                    done
                done
            }"#;
        finish(&shell, forge).await;
        let cases = [
            (
                "set -x",
                "exec 9>trace; BASH_XTRACEFD=9; set -x",
                "forge trace",
                "set +x; unset BASH_XTRACEFD",
            ),
            ("set -v", "exec 8>&2 2>verbose; set -v", "set +v; exec 2>&8; forge verbose", ":"),
            (
                "declare -p",
                ":",
                "{ declare -p; declare -f; set; trap -p; history; alias; } >all 2>&1; forge all",
                ":",
            ),
            (
                "DEBUG",
                "trap 'echo \"$BASH_COMMAND $_\" >>debug' DEBUG",
                "forge debug",
                "trap - DEBUG",
            ),
            (
                "DEBUG -T",
                "set -T; trap 'declare -p >>traced 2>&1' DEBUG",
                "forge traced",
                "set +T; trap - DEBUG",
            ),
            (
                "ERR",
                "set -E; trap 'declare -p >>errors 2>&1' ERR RETURN",
                "false; forge errors",
                "set +E; trap - ERR RETURN",
            ),
            (
                "PROMPT_COMMAND",
                "PROMPT_COMMAND='declare -p >prompt 2>&1'",
                "forge prompt",
                "PROMPT_COMMAND=",
            ),
            ("files", ":", "forge ../root/shells/*/*", ":"),
            ("environ", ":", "cat /proc/$$/environ /proc/self/environ >e; forge e", ":"),
            (
                "descriptors",
                "[[ $(readlink /proc/$$/fd/1000) == */pipe* ]]",
                "ls -l /proc/self/fd >fds; bash -c 'read -t 0.1 -u 1000 x; echo $x' >>fds 2>&1; forge fds",
                ":",
            ),
            ("its pipe", ":", "read -t 0.1 -u 1000 x; echo $x >pipe; forge pipe", ":"),
            (
                "its builtin",
                ":",
                "__sb; __sb prompt; __sb recover; (__sb prompt); __sb prepare . u h; forge ./*",
                "! __sb prepare . u h",
            ),
        ];
        for (name, before, during, after) in cases {
            assert_eq!(finish(&shell, before).await.exit_code, 0, "{name}");
            let result = finish(&shell, format!("{during}; echo the end; (exit 5)")).await;
            assert_eq!(result.exit_code, 5, "{name}");
            assert_ne!(result.cwd, std::path::Path::new("/forged"), "{name}");
            let output = String::from_utf8_lossy(&raw(&shell, &result)).into_owned();
            assert!(output.contains("the end"), "{name}: {output:?}");
            assert_eq!(finish(&shell, after).await.exit_code, 0, "{name}");
        }
        // A forged marker with the right format is ordinary output.
        let forged = "\x1b]7717;E;1;00000000000000000000000000000000;0;;u;h;/;\x07";
        assert_eq!(run(&shell, format!("printf '{forged}'; (exit 3)")).await, (3, forged.into()));
        shells.shut_down().await.unwrap();
    });
}

/// A control client that receives the bytes of the pane as the shell printed them, including markers.
struct Eavesdropper(Child);

impl Eavesdropper {
    fn attach(home: &Home) -> Self {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(home.root().join("tmux")).args([
            "-C",
            "attach-session",
            "-t",
            "=s-a",
        ]);
        command.env_remove("TMUX").stdin(Stdio::piped()).stdout(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    /// Returns the output up to and including the line with this text.
    fn hear_until(&mut self, wanted: &str) -> Vec<u8> {
        let mut heard = Vec::new();
        let mut lines = BufReader::new(self.0.stdout.take().unwrap());
        while !String::from_utf8_lossy(&heard).contains(wanted) {
            let mut line = Vec::new();
            assert!(lines.read_until(b'\n', &mut line).unwrap() > 0, "the server has ended");
            let Some(output) = line.strip_prefix(b"%output ") else { continue };
            let start = output.iter().position(|&byte| byte == b' ').unwrap() + 1;
            heard.extend(unescape(&output[start..output.len() - 1]));
        }
        heard
    }
}

impl Drop for Eavesdropper {
    fn drop(&mut self) {
        // Both fail only if the client has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Decodes tmux's octal escapes of control characters and backslashes.
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        let octal = (byte == b'\\').then(|| std::str::from_utf8(after.get(..3)?).ok()).flatten();
        match octal.and_then(|octal| u8::from_str_radix(octal, 8).ok()) {
            Some(value) => {
                out.push(value);
                rest = &after[3..];
            }
            None => {
                out.push(byte);
                rest = after;
            }
        }
    }
    out
}

#[test]
fn an_old_stream_can_be_replayed_without_harm() {
    test(async {
        let home = Home::new();
        let shells = home.open().await;
        let shell = home.shell(&shells, "a").await;
        let mut eavesdropper = Eavesdropper::attach(&home);
        let clients =
            format!("tmux -S {}/tmux list-clients -t =s-a | wc -l", home.root().display());
        let attached = format!("until [ $({clients}) = 1 ]; do sleep 0.02; done");
        finish(&shell, attached).await;
        assert_eq!(finish(&shell, "echo the original; (exit 3)").await.exit_code, 3);
        finish(&shell, "echo 'the' 'end'").await;
        let stream = eavesdropper.hear_until("the end\r\n");
        let markers = String::from_utf8_lossy(&stream).matches("]7717;").count();
        assert!(markers >= 4, "the stream has the markers: {markers}");
        drop(eavesdropper);
        fs::write(home.work().join("stream"), &stream).unwrap();
        // The whole stream, and its markers alone.
        for replay in ["cat stream", "grep -ao $'\\e]7717;[^\\a]*\\a' stream", "cat stream stream"]
        {
            let result =
                finish(&shell, format!("stty -opost; {replay}; stty opost; (exit 4)")).await;
            assert_eq!(result.exit_code, 4, "{replay}");
            let output = raw(&shell, &result);
            assert!(String::from_utf8_lossy(&output).contains("]7717;E;"), "it is only text now");
        }
        assert_eq!(run(&shell, "echo after").await, (0, "after\n".into()));
        shells.shut_down().await.unwrap();
    });
}
