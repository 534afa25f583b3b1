//! Splits a text into tokens for the parser, if the parser can handle it quickly.
//!
//! The parser is recursive and backtracks. With each nested level of some unclosed constructs it
//! takes two or three times as long, and others overflow its stack, which ends the program. The
//! author of a command must not be able to do that, so texts are checked first. A text that is
//! nested too deeply is left to bash.

use std::thread;

use brush_parser::{ParserOptions, Token, TokenizerError, uncached_tokenize_str};

/// Limit for nested compound commands and parentheses. The parser takes up to 25 KiB of stack for
/// each.
const DEPTH: usize = 40;
/// Limit for the estimated steps of the parser: one for each token, twice as many for a token in
/// parentheses, and so on. They take some milliseconds.
const STEPS: u64 = 1 << 16;
/// Up to this many expansions (`$(…)` and similar), the stack of any thread is enough even if all
/// are nested.
const FEW_EXPANSIONS: usize = 60;
/// Up to this many expansions, [`STACK`] is enough.
const EXPANSIONS: usize = 4000;
/// The stack of the thread for many expansions. Each level takes up to 14 KiB.
const STACK: usize = 64 << 20;
/// Limit for the bytes that are copied if all expansions are nested: each one is copied by the one
/// around it.
const COPIED: usize = 64 << 20;

/// Splits a text into tokens; `None` if it is nested too deeply.
pub(super) fn tokens(text: &str) -> Option<Result<Vec<Token>, TokenizerError>> {
    let is_expansion = |pair: &&[u8]| matches!(pair, [b'$', b'(' | b'{' | b'[']);
    let expansions = text.as_bytes().windows(2).filter(is_expansion).count();
    if has_odd_heredoc(text) {
        return None;
    }
    // If the last line announces a heredoc, the tokenizer could look for its end for ever. So lines
    // are added: two, because a backslash can take one away.
    let text = format!("{text}\n\n");
    let split = || uncached_tokenize_str(&text, &ParserOptions::default().tokenizer_options());
    let tokens = match expansions {
        0..=FEW_EXPANSIONS => split(),
        _ if expansions > EXPANSIONS || expansions * text.len() > COPIED => return None,
        _ => thread::scope(|scope| {
            let roomy = thread::Builder::new().stack_size(STACK);
            roomy.spawn_scoped(scope, split).ok()?.join().ok()
        })?,
    };
    Some(match tokens {
        Ok(mut tokens) => {
            tokens.iter_mut().for_each(simplify);
            if !is_within_limits(&tokens) {
                return None;
            }
            Ok(tokens)
        }
        Err(error) => Err(error),
    })
}

/// Whether the rest of a line with the beginning of a heredoc may be inside an expansion. The
/// parser then loses count of open constructs and may read beyond the end, which is a panic. Only
/// plain lines count as harmless.
fn has_odd_heredoc(text: &str) -> bool {
    let openings = ["$(", "${", "$["].iter().filter_map(|opening| text.find(opening));
    let Some(first) = openings.min() else { return false };
    let is_plain = |c: char| c.is_alphanumeric() || " \t_./-|>&;:,=+".contains(c);
    let mut from = 0;
    while let Some(place) = text[from..].find("<<") {
        let place = from + place + 2;
        from = place;
        if text[place..].starts_with('<') {
            from += 1;
            continue;
        }
        let line = text[place..].lines().next().unwrap_or_default();
        let line = line.strip_prefix('-').unwrap_or(line).trim_start_matches([' ', '\t']);
        let (tag, line) = match line.chars().next() {
            Some(quote @ ('\'' | '"')) => line[1..].split_once(quote).unwrap_or_default(),
            _ => line.split_at(line.find([' ', '\t']).unwrap_or(line.len())),
        };
        let is_harmless = match place < first {
            true => without_variables(line).chars().all(is_plain),
            false => line.chars().all(is_plain),
        };
        if tag.is_empty() || !tag.chars().all(is_plain) || !is_harmless {
            return true;
        }
    }
    false
}

/// The rest of a line without `${name}`, and without quotes if they are balanced.
fn without_variables(line: &str) -> String {
    let mut pieces = line.split("${");
    let mut rest = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        match piece.split_once('}') {
            Some((name, after)) if name.chars().all(|c| c == '_' || c.is_alphanumeric()) => {
                rest.push_str(after);
            }
            _ => rest.push_str("${"),
        }
    }
    if rest.matches('"').count().is_multiple_of(2) { rest.replace('"', "") } else { rest }
}

/// Simplifies a word that the parser has trouble with: it reads subscripts with another recursive
/// grammar, and file descriptor numbers must not overflow.
fn simplify(token: &mut Token) {
    let Token::Word(word, _) = token else { return };
    if word.len() > 9 && word.bytes().all(|byte| byte.is_ascii_digit()) {
        *word = "1".into();
    }
    let name = word.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(0);
    if name > 0 && word[name..].starts_with('[') {
        let is_assignment = word.contains("]=") || word.contains("]+=");
        word.replace_range(
            name..,
            match is_assignment {
                true if word.ends_with('=') => "=",
                true => "=value",
                false => "",
            },
        );
    }
}

/// A construct that is still open.
struct Open {
    by: Opening,
    /// Whether it was opened where a command could begin.
    as_command: bool,
    /// How often the parser may visit a token outside of it.
    visits: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Opening {
    Parenthesis,
    Brace,
    Case,
    If,
    Loop,
    Other,
}

/// Whether the tokens are within the limits of the parser. It rather counts too many levels than
/// too few: an opening counts anywhere, a closing word only where a command could begin, and only
/// for the latest opening.
fn is_within_limits(tokens: &[Token]) -> bool {
    let next = |number: usize| tokens.get(number + 1).map_or("", Token::to_str);
    let mut open: Vec<Open> = Vec::new();
    let mut as_command = true;
    let (mut visits, mut steps, mut negations) = (1_u64, 0_u64, 0);
    for (number, token) in tokens.iter().enumerate() {
        let (text, is_word) = match token {
            Token::Word(word, _) => (word.as_str(), true),
            Token::Operator(operator, _) => (operator.as_str(), false),
        };
        let opening = match (text, is_word) {
            ("(", false) => Some(Opening::Parenthesis),
            ("{", true) => Some(Opening::Brace),
            ("case", true) => Some(Opening::Case),
            ("if", true) => Some(Opening::If),
            ("for" | "while" | "until" | "select", true) => Some(Opening::Loop),
            ("coproc", true) => Some(Opening::Other),
            _ => None,
        };
        let closed = match (text, is_word) {
            (")", false) => Some(Opening::Parenthesis),
            ("}", true) if as_command => Some(Opening::Brace),
            // Before these, `esac` may be a pattern.
            ("esac", true) if as_command && !matches!(next(number), ")" | "|") => {
                Some(Opening::Case)
            }
            ("fi", true) if as_command => Some(Opening::If),
            ("done", true) if as_command => Some(Opening::Loop),
            _ => None,
        };
        let mut closes_command = is_word;
        if let Some(by) = opening {
            open.push(Open { by, as_command, visits });
            visits = visits.saturating_mul(match by {
                Opening::Parenthesis => 2,
                Opening::Case => 3,
                _ => 1,
            });
        } else if let Some(latest) = open.pop_if(|latest| Some(latest.by) == closed) {
            visits = latest.visits;
            closes_command |= latest.as_command;
        }
        negations = if text == "!" { negations + 1 } else { 0 };
        steps = steps.saturating_add(visits);
        if open.len() > DEPTH || steps > STEPS || negations > DEPTH / 8 {
            return false;
        }
        as_command = match (text, is_word) {
            (")", false) => closes_command,
            (operator, false) => !operator.contains(['<', '>']),
            ("{" | "}" | "esac" | "fi" | "done" | "if" | "then" | "else" | "elif", true)
            | ("while" | "until" | "do" | "!" | "time", true) => as_command,
            _ => false,
        };
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::commands::{Commands, parse};

    /// Texts that open or close constructs.
    const PIECES: [&str; 60] = [
        "( ",
        "(",
        "((",
        "{ ",
        "$(",
        "${",
        "$((",
        "$[",
        "`",
        "\"",
        "'",
        "[[ ( ",
        "[[ ! ",
        "! ",
        "[[ a =~ (",
        "if ",
        "if a; then ",
        "else ",
        "elif a; then ",
        "while ",
        "while a; do ",
        "for x in a; do ",
        "for ((;;)) { ",
        "case x in a) ",
        "case x in (a) ",
        "coproc ",
        "coproc n { ",
        "f() { ",
        "function f ( ",
        "function f () { ",
        "a <( ",
        "a > >( ",
        "a=( ",
        "x[",
        "x[${y[",
        "x[(",
        "@(",
        "<<E ",
        "<<-'E'\n",
        "E\n",
        ") ",
        ")",
        "} ",
        "; }; ",
        "fi ",
        "; fi; ",
        "done ",
        "; done; ",
        "esac ",
        ";; esac ",
        "]] ",
        "]",
        "))",
        "\n",
        "; ",
        "&& ",
        "a ",
        "echo a=(x) } ",
        "99999999999>f ",
        "\\",
    ];

    #[test]
    fn depth_is_no_danger() {
        for piece in PIECES {
            for times in [7, 14, 21, 28, 39, 60, 100, 1000, 20_000] {
                parse(&piece.repeat(times));
            }
        }
        for first in PIECES {
            for second in PIECES {
                for times in [12, 300] {
                    parse(&format!("{first}{second}").repeat(times));
                }
            }
        }
    }

    #[test]
    fn a_long_text_in_something_open_is_no_danger() {
        for start in ["( ", "case x in a) ", "[[ a =~ (", "{ ", "$(", "x[${y["] {
            for times in [3, 8, 15] {
                parse(&(start.repeat(times) + &"echo a b c; ".repeat(20_000)));
            }
        }
    }

    #[test]
    fn a_heredoc_without_a_name_is_no_danger() {
        for text in ["cat <<'' #", "cat <<'' \\", "$(<< <<E \\", "cat <<'' <<E #", "cat <<'' ;"] {
            parse(text);
        }
    }

    #[test]
    fn a_heredoc_in_an_expansion_is_no_danger() {
        for text in ["${; $(a > >( <<\t)) ${; $(a > >( <<\t)) ", "coproc <<${$(() (f () { a <( "] {
            for times in 1..6 {
                parse(&text.repeat(times));
            }
        }
        let commit = "git commit -m \"$(cat <<'EOF'\nit's (done\nEOF\n)\"";
        assert_eq!(parse(commit), Commands::One);
        let both = vec![commit.to_owned(), "git push".to_owned()];
        assert_eq!(parse(&format!("{commit}\ngit push")), Commands::Several(both));
        let text = "cat <<EOF > \"${dir}/f\"\n$(x)\nEOF";
        let both = vec![text.to_owned(), "ls".to_owned()];
        assert_eq!(parse(&format!("{text}\nls")), Commands::Several(both));
    }

    #[test]
    fn many_lines_are_no_danger() {
        parse(&"a\n".repeat(100_000));
    }

    #[test]
    fn what_people_write_is_parsed() {
        let script = "for x in a b; do\n if [[ $x =~ ^(a|b)$ ]]; then (cd $x && ((n++)) && a[n]=$(ls)); fi\ndone\n";
        let function = "f() { case $1 in a) echo $(( ($1 + 2) * 3 )) ;; *) x=(1 2 3) ;; esac; }\n";
        let text = (script.to_owned() + function).repeat(300);
        match parse(&text) {
            Commands::Several(pieces) => assert_eq!(pieces.len(), 600),
            other => panic!("{other:?}"),
        }
        let heredoc = format!("cat > x <<'E'\n{}E\n", "echo ${a} $(b)\n".repeat(1000));
        assert_eq!(parse(&heredoc), Commands::One);
        let both = vec![heredoc.trim_end().to_owned(), "ls".to_owned()];
        assert_eq!(parse(&(heredoc + "ls")), Commands::Several(both));
    }
}
