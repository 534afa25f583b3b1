//! Estimates how deep the elements of a page are nested, in one pass, before a parser sees it.
//!
//! A parser looks at all open elements for many tags, so a deep page takes it quadratic time. The
//! estimate knows which elements are never nested in their own kind. It may be wrong for tags that
//! a parser moves around; the limits of the helper process hold for those.

/// Elements without content.
const EMPTY: [&[u8]; 14] = [
    b"area", b"base", b"br", b"col", b"embed", b"hr", b"img", b"input", b"link", b"meta", b"param",
    b"source", b"track", b"wbr",
];
/// Elements that the next one of their kind ends.
const SELF_ENDING: [&[u8]; 12] = [
    b"p",
    b"li",
    b"dd",
    b"dt",
    b"td",
    b"th",
    b"tr",
    b"tbody",
    b"thead",
    b"tfoot",
    b"option",
    b"optgroup",
];
/// Elements whose content has no tags.
const RAW: [&[u8]; 4] = [b"script", b"style", b"textarea", b"title"];

/// Whether elements are nested deeper than `most`.
pub(crate) fn is_deeper_than(html: &[u8], most: usize) -> bool {
    let mut open: Vec<&[u8]> = Vec::new();
    let mut rest = html;
    while let Some(start) = memchr::memchr(b'<', rest) {
        rest = &rest[start + 1..];
        if let Some(comment) = rest.strip_prefix(b"!--") {
            rest = after(comment, b"-->");
            continue;
        }
        let is_end = rest.first() == Some(&b'/');
        let from = usize::from(is_end);
        let length = rest[from..].iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
        let name = &rest[from..from + length];
        if !name.first().is_some_and(u8::is_ascii_alphabetic) {
            continue;
        }
        rest = &rest[from + length..];
        let is = |other: &[u8]| name.eq_ignore_ascii_case(other);
        if is_end {
            if let Some(last) = open.iter().rposition(|other| is(other)) {
                open.truncate(last);
            }
        } else if RAW.iter().any(|raw| is(raw)) {
            rest = after_raw(rest, name);
        } else if !EMPTY.iter().any(|empty| is(empty)) {
            end_implied(&mut open, name);
            open.push(name);
            if open.len() > most {
                return true;
            }
        }
    }
    false
}

/// Closes the elements that this beginning ends.
fn end_implied<'a>(open: &mut Vec<&'a [u8]>, name: &'a [u8]) {
    let ends_itself =
        |name: &[u8]| SELF_ENDING.iter().any(|other| name.eq_ignore_ascii_case(other));
    if ends_itself(name) {
        let run = open.iter().rev().take_while(|other| ends_itself(other)).count();
        let first = open.len() - run;
        let same = open[first..].iter().position(|other| other.eq_ignore_ascii_case(name));
        if let Some(same) = same {
            open.truncate(first + same);
        }
    }
}

/// The text after the first occurrence of the mark; empty if there is none.
fn after<'a>(text: &'a [u8], mark: &[u8]) -> &'a [u8] {
    memchr::memmem::find(text, mark).map_or(&[], |place| &text[place + mark.len()..])
}

/// The text from the name in the end tag of an element that contains no tags, such as a script.
fn after_raw<'a>(mut text: &'a [u8], name: &[u8]) -> &'a [u8] {
    while let Some(place) = memchr::memmem::find(text, b"</") {
        text = &text[place + 2..];
        if text.get(..name.len()).is_some_and(|end| end.eq_ignore_ascii_case(name)) {
            return text;
        }
    }
    &[]
}

#[cfg(test)]
mod tests {
    use super::is_deeper_than;

    fn is_deep(html: &str) -> bool {
        is_deeper_than(html.as_bytes(), 10)
    }

    #[test]
    fn nested_elements_are_deep() {
        assert!(is_deep(&"<div>".repeat(11)));
        assert!(is_deep(&"<DIV a='b'><x:y>".repeat(6)));
        assert!(is_deep(&"<ul><li>".repeat(6)));
        assert!(is_deep(&"<table><tr><td>".repeat(4)));
        assert!(is_deep(&"<div></p></x>".repeat(11)));
        assert!(is_deep(&("<!-- a --><title></title>".to_owned() + &"<b>".repeat(11))));
    }

    #[test]
    fn long_pages_are_not() {
        for html in [
            "<div></div>",
            "<p>",
            "<br><img src=x><hr/>",
            "<tr><td>a<td>b",
            "<dt>a<dd>b",
            "<!-- <div> --><script>'<div>'</script><style><b></style>",
            "a < b, a <= b, </ <3",
        ] {
            assert!(!is_deep(&html.repeat(100)), "{html}");
        }
        assert!(!is_deep(&format!("<ul>{}</ul>", "<li>a".repeat(100))));
        for end in ["<", "</", "<!--", "<script>", "<script></scr", "<div"] {
            assert!(!is_deep(end), "{end}");
        }
    }
}
