//! Converts text between bytes on disk and characters in memory, without loss.
//!
//! Decoding detects the encoding: a byte order mark identifies UTF-8 and UTF-16. Without one, valid
//! UTF-8 is UTF-8, and for anything else a detector names a legacy encoding. A detected encoding is
//! used only if encoding the text again gives the same bytes. Otherwise the file is decoded as
//! windows-1252 (a superset of printable Latin-1), which has a character for each byte. So an edit
//! never changes bytes outside of the edit.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{EncoderResult, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// How many bytes at the start of a file decide whether it is text or binary.
pub(super) const SNIFFED_BYTES: usize = 8 * 1024;

/// Fits into the first-level cache of a processor, with room to spare.
const CACHED_BYTES: usize = 16 * 1024;

const UTF8_MARK: &[u8] = b"\xEF\xBB\xBF";
const UTF16_LE_MARK: &[u8] = b"\xFF\xFE";
const UTF16_BE_MARK: &[u8] = b"\xFE\xFF";

/// How a file stores its characters. It is kept when the file is edited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8 without a mark; also plain ASCII.
    Utf8,
    /// UTF-8 with a byte order mark.
    Utf8WithMark,
    /// UTF-16, low byte first, with a byte order mark.
    Utf16Le,
    /// UTF-16, high byte first, with a byte order mark.
    Utf16Be,
    /// An encoding older than Unicode, as detected.
    Legacy(&'static encoding_rs::Encoding),
}

/// How lines end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineEnding {
    /// `\n`.
    Lf,
    /// `\r\n`.
    CrLf,
}

/// The text of a file, and how to encode it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Document {
    /// Without the byte order mark, with line ends as they are.
    pub text: String,
    pub encoding: Encoding,
}

/// The bytes are not text in any known encoding.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotText;

/// A character that the encoding cannot represent.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unencodable(pub char);

impl Encoding {
    /// The usual name of the encoding.
    pub fn name(self) -> &'static str {
        match self {
            Self::Utf8 | Self::Utf8WithMark => "UTF-8",
            Self::Utf16Le => "UTF-16LE",
            Self::Utf16Be => "UTF-16BE",
            Self::Legacy(encoding) => encoding.name(),
        }
    }
}

impl LineEnding {
    /// The characters of the line ending.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lf => "\n",
            Self::CrLf => "\r\n",
        }
    }

    /// The ending of most lines of the text; `None` if there is only one line.
    pub(super) fn of(text: &str) -> Option<Self> {
        LineEnds::of(text).usual()
    }
}

/// The line ends of a text.
#[derive(Debug)]
pub(super) struct LineEnds {
    /// Number of all line ends.
    count: usize,
    /// Number of line ends with a carriage return.
    with_return: usize,
    /// Whether the last line lacks its end.
    is_open: bool,
}

impl LineEnds {
    pub fn of(text: &str) -> Self {
        let (mut count, mut has_return) = (0, false);
        // Search piece by piece, so that the second search finds the bytes in the processor's
        // cache.
        for piece in text.as_bytes().chunks(CACHED_BYTES) {
            count += memchr::memchr_iter(b'\n', piece).count();
            has_return |= memchr::memchr(b'\r', piece).is_some();
        }
        // Most files have no carriage return, and finding that out is much faster than counting
        // pairs.
        let returns =
            has_return.then(|| memchr::memmem::find_iter(text.as_bytes(), "\r\n").count());
        let with_return = returns.unwrap_or(0);
        Self { count, with_return, is_open: !text.is_empty() && !text.ends_with('\n') }
    }

    /// Number of lines. The last line may lack its end.
    pub fn lines(&self) -> usize {
        self.count + usize::from(self.is_open)
    }

    /// The ending of most lines; `None` if there is only one line.
    pub fn usual(&self) -> Option<LineEnding> {
        let is_crlf = self.with_return * 2 > self.count;
        (self.count > 0).then_some(if is_crlf { LineEnding::CrLf } else { LineEnding::Lf })
    }
}

impl Document {
    pub fn decode(bytes: Vec<u8>) -> Result<Self, NotText> {
        if bytes.starts_with(UTF8_MARK) {
            let text = std::str::from_utf8(&bytes[UTF8_MARK.len()..]).map_err(|_| NotText)?;
            return Ok(Self { text: text.to_owned(), encoding: Encoding::Utf8WithMark });
        }
        for (mark, encoding, decoder) in [
            (UTF16_LE_MARK, Encoding::Utf16Le, UTF_16LE),
            (UTF16_BE_MARK, Encoding::Utf16Be, UTF_16BE),
        ] {
            if let Some(rest) = bytes.strip_prefix(mark) {
                let text = decoder
                    .decode_without_bom_handling_and_without_replacement(rest)
                    .filter(|text| !text.contains('\0'))
                    .ok_or(NotText)?;
                return Ok(Self { text: text.into_owned(), encoding });
            }
        }
        if memchr::memchr(0, &bytes[..bytes.len().min(SNIFFED_BYTES)]).is_some() {
            return Err(NotText);
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Self { text, encoding: Encoding::Utf8 }),
            Err(error) => Self::decode_legacy(error.as_bytes()),
        }
    }

    /// The bytes to store on disk.
    pub fn encode(&self) -> Result<Vec<u8>, Unencodable> {
        let text = self.text.as_str();
        Ok(match self.encoding {
            Encoding::Utf8 => text.as_bytes().to_vec(),
            Encoding::Utf8WithMark => [UTF8_MARK, text.as_bytes()].concat(),
            Encoding::Utf16Le => utf16(UTF16_LE_MARK, text, u16::to_le_bytes),
            Encoding::Utf16Be => utf16(UTF16_BE_MARK, text, u16::to_be_bytes),
            Encoding::Legacy(encoding) => encode_legacy(text, encoding)?,
        })
    }

    fn decode_legacy(bytes: &[u8]) -> Result<Self, NotText> {
        // Control characters that do not occur in text show that a file is binary even without NUL.
        let is_text = |byte: &u8| *byte >= 0x20 || matches!(byte, b'\t'..=b'\r' | 0x08 | 0x1B);
        if !bytes.iter().take(SNIFFED_BYTES).all(is_text) {
            return Err(NotText);
        }
        let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
        detector.feed(bytes, true);
        for encoding in [detector.guess(None, Utf8Detection::Deny), WINDOWS_1252] {
            let Some(text) = encoding.decode_without_bom_handling_and_without_replacement(bytes)
            else {
                continue;
            };
            let document = Self { text: text.into_owned(), encoding: Encoding::Legacy(encoding) };
            if document.encode().is_ok_and(|again| again == bytes) {
                return Ok(document);
            }
        }
        Err(NotText)
    }
}

fn utf16(mark: &[u8], text: &str, unit: fn(u16) -> [u8; 2]) -> Vec<u8> {
    let mut bytes = mark.to_vec();
    bytes.extend(text.encode_utf16().flat_map(unit));
    bytes
}

fn encode_legacy(
    text: &str,
    encoding: &'static encoding_rs::Encoding,
) -> Result<Vec<u8>, Unencodable> {
    let mut encoder = encoding.new_encoder();
    let mut bytes = Vec::with_capacity(text.len());
    let mut read = 0;
    loop {
        let rest = &text[read..];
        let room = encoder.max_buffer_length_from_utf8_without_replacement(rest.len());
        bytes.reserve(room.unwrap_or(rest.len()));
        let (result, used) =
            encoder.encode_from_utf8_to_vec_without_replacement(rest, &mut bytes, true);
        read += used;
        match result {
            EncoderResult::InputEmpty => return Ok(bytes),
            EncoderResult::OutputFull => {}
            EncoderResult::Unmappable(character) => return Err(Unencodable(character)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(bytes: &[u8], text: &str, name: &str) {
        let document = Document::decode(bytes.to_vec()).unwrap();
        assert_eq!(document.text, text);
        assert_eq!(document.encoding.name(), name);
        assert_eq!(document.encode().unwrap(), bytes);
    }

    proptest! {
        #[test]
        fn line_ends_are_counted(text in "[a\r\n]{0,30}", filling in CACHED_BYTES - 30..CACHED_BYTES) {
            for text in [text.clone(), "a".repeat(filling) + &text] {
                let ends = LineEnds::of(&text);
                prop_assert_eq!(ends.lines(), text.lines().count());
                prop_assert_eq!(ends.with_return, text.matches("\r\n").count());
            }
        }
    }

    #[test]
    fn each_encoding_is_found_and_kept() {
        check(b"", "", "UTF-8");
        check("größe\n".as_bytes(), "größe\n", "UTF-8");
        check(b"\xEF\xBB\xBFa\r\n", "a\r\n", "UTF-8");
        check(b"\xFF\xFEa\0\xE4\0", "aä", "UTF-16LE");
        check(b"\xFE\xFF\0a\0\xE4", "aä", "UTF-16BE");
        check(b"Stra\xDFe und Gr\xF6\xDFe\n", "Straße und Größe\n", "windows-1252");
        let (sjis, _, _) = encoding_rs::SHIFT_JIS.encode("日本語のテキストです。カタカナ\n");
        check(&sjis, "日本語のテキストです。カタカナ\n", "Shift_JIS");
    }

    /// Shift_JIS has two codes for some characters, and encoding produces the other one.
    #[test]
    fn an_encoding_that_does_not_round_trip_is_not_used() {
        let (sjis, _, _) = encoding_rs::SHIFT_JIS.encode("日本語のテキストです。カタカナ");
        let bytes = [&sjis, &b"\x87\x90\n"[..]].concat();
        check(&bytes, &WINDOWS_1252.decode(&bytes).0, "windows-1252");
    }

    #[test]
    fn binary_is_no_text() {
        for bytes in [
            &b"\x7FELF\0\0"[..],
            b"\xFF\xFE\0\0a\0\0\0", // UTF-32
            b"\xFF\xFEa",           // half a unit
            b"\xFF\xFE\x00\xD8",    // half a pair
            b"\xEF\xBB\xBF\xFF",
            b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1",
        ] {
            assert_eq!(Document::decode(bytes.to_vec()), Err(NotText), "{bytes:?}");
        }
    }

    #[test]
    fn a_character_that_the_encoding_lacks_is_named() {
        let mut document = Document::decode(b"Gr\xF6\xDFe".to_vec()).unwrap();
        document.text.push_str(" → 1");
        assert_eq!(document.encode(), Err(Unencodable('→')));
    }

    #[test]
    fn the_majority_of_lines_tells_the_ending() {
        for (text, ending) in [
            ("a", None),
            ("a\r", None),
            ("a\nb", Some(LineEnding::Lf)),
            ("a\r\nb\r\nc\n", Some(LineEnding::CrLf)),
            ("a\r\nb\n", Some(LineEnding::Lf)),
        ] {
            assert_eq!(LineEnding::of(text), ending, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_decodes_encodes_to_the_same_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(document) = Document::decode(bytes.clone()) {
                prop_assert_eq!(document.encode(), Ok(bytes));
            }
        }

        #[test]
        fn high_bytes_round_trip(bytes in proptest::collection::vec(0x20_u8.., 0..200)) {
            if let Ok(document) = Document::decode(bytes.clone()) {
                prop_assert_eq!(document.encode(), Ok(bytes));
            }
        }
    }
}
