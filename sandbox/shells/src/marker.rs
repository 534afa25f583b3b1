//! Markers: the reports of the shell inside its own output stream.
//!
//! A marker is an OSC sequence, `ESC ] 7717 ; kind ; seq ; nonce ; … BEL`: invisible on every terminal, and exactly
//! ordered with the output around it. `S` reports that a command is about to start; `E` reports that it has ended,
//! with its exit code and the state of the shell.
//!
//! Any program can print such a sequence, so a candidate counts only if the digest of its nonce is the one that the
//! owner stored for that kind and command ([`Expected`]). Only digests are on disk: a program that reads them can
//! recognise a marker but cannot print one.

use percent_encoding::{AsciiSet, CONTROLS, percent_decode, percent_encode};
use sha2::{Digest as _, Sha256};

/// The first bytes of every marker.
pub(crate) const INTRODUCER: &[u8] = b"\x1b]7717;";
/// The last byte of every marker.
pub(crate) const TERMINATOR: u8 = 0x07;

/// The bytes that would break a line of the index or the fields of a marker. The library adds all bytes beyond ASCII.
const ENCODED: &AsciiSet = &CONTROLS.add(b';').add(b'%');

/// The number of a command within its shell. Start-ups of the shell have numbers from the same sequence.
pub type Seq = u64;

/// A secret for one marker: 128 random bits in hexadecimal.
pub(crate) struct Nonce(String);

impl Nonce {
    pub(crate) fn fresh() -> Self {
        Self(format!("{:032x}", rand::random::<u128>()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn digest(&self) -> String {
        digest(self.0.as_bytes())
    }
}

/// What the shell reports about itself when a command has ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct EndReport {
    pub(crate) exit_code: i32,
    pub(crate) background_pid: Option<u32>,
    pub(crate) user: String,
    pub(crate) machine: String,
    /// Bytes, because a directory's name need not be UTF-8.
    pub(crate) cwd: Vec<u8>,
    pub(crate) python: Option<Vec<u8>>,
}

/// A well-formed marker. [`Expected::confirms`] checks whether it is genuine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Marker {
    Start { seq: Seq },
    End { seq: Seq, report: EndReport },
}

impl Marker {
    /// Parses the bytes between introducer and terminator. Returns the marker and its nonce, or `None` if the bytes
    /// are not a marker.
    pub(crate) fn parse(payload: &[u8]) -> Option<(Self, &[u8])> {
        let mut fields = payload.split(|&byte| byte == b';');
        let kind = fields.next()?;
        let seq = number(fields.next()?)?;
        let nonce = fields.next()?;
        let marker = match kind {
            b"S" => Self::Start { seq },
            b"E" => Self::End { seq, report: EndReport::parse(&mut fields)? },
            _ => return None,
        };
        fields.next().is_none().then_some((marker, nonce))
    }

    /// The payload as the index stores it: with an empty nonce, since the nonce is used up.
    pub(crate) fn print(&self) -> Vec<u8> {
        match self {
            Self::Start { seq } => format!("S;{seq};").into_bytes(),
            Self::End { seq, report } => {
                let pid = report.background_pid.map(|pid| pid.to_string()).unwrap_or_default();
                let mut out = format!("E;{seq};;{};{pid};", report.exit_code).into_bytes();
                let python = report.python.as_deref().unwrap_or_default();
                for field in
                    [report.user.as_bytes(), report.machine.as_bytes(), &report.cwd, python]
                {
                    out.extend(percent_encode(field, ENCODED).flat_map(str::bytes));
                    out.push(b';');
                }
                out.pop();
                out
            }
        }
    }

    pub(crate) fn seq(&self) -> Seq {
        match self {
            Self::Start { seq } | Self::End { seq, .. } => *seq,
        }
    }
}

impl EndReport {
    fn parse<'a>(fields: &mut impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        let exit_code = number(fields.next()?)?;
        let background_pid = number(fields.next()?);
        let user = String::from_utf8_lossy(&decode(fields.next()?)).into_owned();
        let machine = String::from_utf8_lossy(&decode(fields.next()?)).into_owned();
        let cwd = decode(fields.next()?);
        let python = Some(decode(fields.next()?)).filter(|path| !path.is_empty());
        Some(Self { exit_code, background_pid, user, machine, cwd, python })
    }
}

/// What the shell is doing between a start marker and an end marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The shell reads its start-up files.
    StartUp,
    /// The shell evaluates a command.
    Command,
}

/// The digests of the nonces that the next markers must carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) seq: Seq,
    pub(crate) kind: Kind,
    pub(crate) start: String,
    pub(crate) end: String,
}

impl Expected {
    pub(crate) fn print(&self) -> String {
        let kind = match self.kind {
            Kind::StartUp => "start-up",
            Kind::Command => "command",
        };
        format!("{} {kind} {} {}\n", self.seq, self.start, self.end)
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        // A line without a newline is still being written and must not count. What follows the newline is the rest of
        // a longer line, whose writer was killed before it truncated the file.
        let mut words = text.split_once('\n')?.0.split(' ');
        let seq = words.next()?.parse().ok()?;
        let kind = match words.next()? {
            "start-up" => Kind::StartUp,
            "command" => Kind::Command,
            _ => return None,
        };
        Some(Self { seq, kind, start: words.next()?.to_owned(), end: words.next()?.to_owned() })
    }

    /// Whether a marker with this nonce is genuine.
    pub(crate) fn confirms(&self, marker: &Marker, nonce: &[u8]) -> bool {
        let wanted = match marker {
            Marker::Start { .. } => &self.start,
            Marker::End { .. } => &self.end,
        };
        marker.seq() == self.seq && *wanted == digest(nonce)
    }
}

fn digest(nonce: &[u8]) -> String {
    let bytes: [u8; 32] = Sha256::digest(nonce).into();
    let (halves, _) = bytes.as_chunks::<16>();
    halves.iter().map(|&half| format!("{:032x}", u128::from_be_bytes(half))).collect()
}

fn number<T: std::str::FromStr>(field: &[u8]) -> Option<T> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

fn decode(field: &[u8]) -> Vec<u8> {
    percent_decode(field).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_marker_survives_printing_with_an_odd_directory() {
        let report = EndReport {
            exit_code: 130,
            background_pid: Some(77),
            user: "me".into(),
            machine: "here".into(),
            cwd: b"/a;b\n%41\xff\"\\ c".to_vec(),
            python: None,
        };
        let marker = Marker::End { seq: 9, report };
        let printed = marker.print();
        assert!(!printed.iter().any(u8::is_ascii_control));
        assert_eq!(Marker::parse(&printed), Some((marker, &b""[..])));
    }

    #[test]
    fn fields_are_decoded_and_what_is_no_escape_stays() {
        let (marker, _) = Marker::parse(b"E;1;n;0;;%zz;%+A;/%4%3b;%C3%BC\xff%").unwrap();
        let Marker::End { report, .. } = marker else { panic!("{marker:?}") };
        assert_eq!((&*report.user, &*report.machine), ("%zz", "%+A"));
        assert_eq!(report.cwd, b"/%4;");
        assert_eq!(report.python.as_deref(), Some(&b"\xc3\xbc\xff%"[..]));
    }

    #[test]
    fn only_the_expected_nonce_of_the_expected_kind_counts() {
        let (start, end) = (Nonce::fresh(), Nonce::fresh());
        let expected =
            Expected { seq: 4, kind: Kind::Command, start: start.digest(), end: end.digest() };
        let expected = Expected::parse(&expected.print()).expect("what we print we can parse");
        let marker = Marker::Start { seq: 4 };
        assert!(expected.confirms(&marker, start.as_str().as_bytes()));
        assert!(!expected.confirms(&marker, end.as_str().as_bytes()));
        assert!(!expected.confirms(&marker, start.digest().as_bytes()));
        assert!(!expected.confirms(&Marker::Start { seq: 3 }, start.as_str().as_bytes()));
        assert_eq!(Expected::parse(expected.print().trim_end()), None, "half-written line");
    }

    #[test]
    fn other_sequences_are_not_markers() {
        for payload in ["", "S", "S;1", "S;x;n", "S;1;n;more", "E;1;n", "E;1;n;0;;u;h;/", "Q;1;n"] {
            assert_eq!(Marker::parse(payload.as_bytes()), None, "{payload}");
        }
    }
}
