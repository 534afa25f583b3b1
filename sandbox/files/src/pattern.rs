//! Globs and regular expressions, bounded before a parser sees them.
//!
//! The libraries compile a pattern to an automaton, whose size grows with the pattern, and abort on
//! globs that become too large or are nested too deeply. Patterns of people are far below the
//! limits here.

use globset::{GlobBuilder, GlobMatcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};

use super::Error;
use super::search::{Case, Grep};

/// The longest glob in bytes: as long as the longest path.
pub const GLOB_BYTES: usize = 4096;
/// The largest number of `{` in a glob, nested or not.
pub const GLOB_CHOICES: usize = 32;
/// The longest regular expression in bytes.
pub const REGEX_BYTES: usize = 64 << 10;
/// How deep a regular expression may be nested.
const REGEX_DEPTH: u32 = 100;
/// Limit for the memory of a compiled regular expression, in bytes.
const REGEX_MEMORY: usize = 16 << 20;
/// Limit for the cache of a regular expression while it searches, in bytes.
const REGEX_CACHE: usize = 64 << 20;
/// How many characters of a pattern, and of what is wrong with it, an error quotes.
const QUOTED: usize = 200;

/// Whether a glob is within the limits.
pub(super) fn is_plain_glob(glob: &str) -> bool {
    glob.len() <= GLOB_BYTES && choices(glob) <= GLOB_CHOICES
}

pub(super) fn glob_matcher(glob: &str) -> Result<GlobMatcher, Error> {
    check_length(glob, GLOB_BYTES)?;
    if !is_plain_glob(glob) {
        return Err(bad_pattern(glob, format!("it has more than {GLOB_CHOICES} groups in braces")));
    }
    let built = GlobBuilder::new(glob).literal_separator(true).build();
    built.map(|glob| glob.compile_matcher()).map_err(|error| bad_pattern(glob, error))
}

pub(super) fn regex_matcher(query: &Grep) -> Result<RegexMatcher, Error> {
    check_length(&query.pattern, REGEX_BYTES)?;
    RegexMatcherBuilder::new()
        .case_insensitive(query.case == Case::Insensitive)
        .case_smart(query.case == Case::Smart)
        .fixed_strings(query.literal)
        .line_terminator(Some(b'\n'))
        .nest_limit(REGEX_DEPTH)
        .size_limit(REGEX_MEMORY)
        .dfa_size_limit(REGEX_CACHE)
        .build(&query.pattern)
        .map_err(|error| bad_pattern(&query.pattern, error))
}

/// Counts what opens a choice. Also a `{` that is escaped or in a class counts: then nothing needs
/// to be parsed for the count.
fn choices(glob: &str) -> usize {
    glob.bytes().filter(|&byte| byte == b'{').count()
}

fn check_length(pattern: &str, most: usize) -> Result<(), Error> {
    match pattern.len() > most {
        true => Err(bad_pattern(pattern, format!("it is longer than {most} bytes"))),
        false => Ok(()),
    }
}

fn bad_pattern(pattern: &str, reason: impl ToString) -> Error {
    Error::BadPattern { pattern: beginning(pattern), reason: beginning(&reason.to_string()) }
}

/// The beginning of a text, for an error.
fn beginning(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
