//! Compares two texts and prints the differences in the unified format.

use std::time::Duration;

use similar::TextDiff;

/// How long the search for the smallest difference may take. After that the result is still
/// correct, but may be longer than necessary.
const EFFORT: Duration = Duration::from_secs(1);

/// The unified difference with `context` lines around each change (0 is allowed); empty if the
/// texts are equal. `names` follow `---` and `+++`. A missing final line end is marked as `diff`
/// marks it.
pub fn unified_diff(old: &str, new: &str, names: (&str, &str), context: usize) -> String {
    TextDiff::configure()
        .timeout(EFFORT)
        .diff_lines(old, new)
        .unified_diff()
        .context_radius(context)
        .header(names.0, names.1)
        .to_string()
}

/// The unified difference without context of two lists of lines, which are given with `\n` between
/// lines. So a final `\n` begins one more, empty, line.
pub fn unified_diff_of_lines(old: &str, new: &str, names: (&str, &str)) -> String {
    let (old, new) = (old.split('\n').collect::<Vec<_>>(), new.split('\n').collect::<Vec<_>>());
    TextDiff::configure()
        .timeout(EFFORT)
        .diff_slices(&old, &new)
        .unified_diff()
        .context_radius(0)
        .header(names.0, names.1)
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hunks(old: &str, new: &str) -> String {
        let diff = unified_diff(old, new, ("a", "b"), 0);
        diff.strip_prefix("--- a\n+++ b\n").unwrap_or(&diff).to_owned()
    }

    #[test]
    fn hunks_without_context_are_headed_as_diff_does() {
        assert_eq!(hunks("1\n2\n3\n", "1\nx\ny\n3\n"), "@@ -2 +2,2 @@\n-2\n+x\n+y\n");
        assert_eq!(hunks("1\n", "0\n1\n"), "@@ -0,0 +1 @@\n+0\n");
        assert_eq!(hunks("1\n2\n3\n", "1\n3\n"), "@@ -2 +1,0 @@\n-2\n");
        assert_eq!(hunks("", "1\n2\n"), "@@ -0,0 +1,2 @@\n+1\n+2\n");
        assert_eq!(hunks("1\n", "1\n"), "");
    }

    #[test]
    fn separate_changes_without_context_are_separate_hunks() {
        assert_eq!(hunks("1\n2\n3\n", "x\n2\ny\n"), "@@ -1 +1 @@\n-1\n+x\n@@ -3 +3 @@\n-3\n+y\n");
    }

    #[test]
    fn a_missing_line_end_shows() {
        assert!(hunks("a\n", "a").contains("\\ No newline at end of file"));
    }
}
