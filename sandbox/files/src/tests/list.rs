//! Listing directories.

use std::fs;
use std::os::unix::fs::symlink;

use super::super::*;
use super::Fixture;

fn shown(listing: &Listing) -> Vec<String> {
    listing.entries.iter().map(|entry| entry.path.to_str().unwrap().to_owned()).collect()
}

fn tree() -> Fixture {
    let fixture = Fixture::new();
    for file in ["b.txt", "a/one", "a/deep/two", "a/.quiet", ".hidden/x", "Z"] {
        fixture.put(file, "");
    }
    fixture
}

#[test]
fn one_level_without_hidden_entries() {
    let fixture = tree();
    let listing = list(&fixture.path("."), ListOptions::default()).unwrap();
    assert_eq!(shown(&listing), ["Z", "a", "b.txt"]);
    assert_eq!(listing.entries[1].kind, Kind::Directory);
    assert_eq!((listing.hidden_left_out, listing.truncated), (1, false));
}

#[test]
fn two_levels() {
    let fixture = tree();
    let options = ListOptions { depth: Depth::Two, ..ListOptions::default() };
    let listing = list(&fixture.path("."), options).unwrap();
    assert_eq!(shown(&listing), ["Z", "a", "a/deep", "a/one", "b.txt"]);
    assert_eq!(listing.hidden_left_out, 1);
    let all = list(&fixture.path("."), ListOptions { hidden: true, ..options }).unwrap();
    let expected = [".hidden", ".hidden/x", "Z", "a", "a/.quiet", "a/deep", "a/one", "b.txt"];
    assert_eq!(shown(&all), expected);
}

#[test]
fn links_show_what_they_lead_to() {
    let fixture = tree();
    symlink("a", fixture.inside("link")).unwrap();
    symlink("nowhere", fixture.inside("broken")).unwrap();
    symlink("../outside", fixture.inside("door")).unwrap();
    let options = ListOptions { depth: Depth::Two, ..ListOptions::default() };
    let listing = list(&fixture.path("."), options).unwrap();
    let find = |name: &str| {
        let found = listing.entries.iter().find(|entry| entry.path.to_str() == Some(name));
        found.map(|entry| (entry.kind, entry.target))
    };
    assert_eq!(find("link"), Some((Kind::Symlink, Some(Kind::Directory))));
    assert_eq!(find("broken"), Some((Kind::Symlink, None)));
    assert_eq!(find("door"), Some((Kind::Symlink, None)));
    assert_eq!(find("link/one"), Some((Kind::File, None)));
    assert_eq!(find("door/secret.txt"), None);
}

#[test]
fn the_number_of_entries_is_bounded() {
    let fixture = tree();
    let options = ListOptions { depth: Depth::Two, limit: 3, ..ListOptions::default() };
    let listing = list(&fixture.path("."), options).unwrap();
    assert_eq!((listing.entries.len(), listing.truncated), (3, true));
}

#[test]
fn only_directories_are_listed() {
    let fixture = tree();
    let file = list(&fixture.path("Z"), ListOptions::default());
    assert!(matches!(file, Err(Error::NotDirectory { .. })), "{file:?}");
    let missing = list(&fixture.path("none"), ListOptions::default());
    assert!(matches!(missing, Err(Error::NotFound { .. })), "{missing:?}");
    fs::create_dir(fixture.inside("empty")).unwrap();
    let empty = list(&fixture.path("empty"), ListOptions::default()).unwrap();
    assert!(empty.entries.is_empty());
}
