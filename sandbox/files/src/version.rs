//! The version of a file's content, by which a caller can state which content it has seen.

use std::fmt;
use std::fs::File;
use std::io;

use super::hash::{Sha256, hash_open_file};

/// Larger files have no version: hashing them takes too long.
pub const VERSIONED_BYTES: u64 = 64 << 20;

/// A hash of the whole content: equal versions mean equal content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version([u8; 16]);

impl Version {
    /// The version of a content.
    pub fn of(bytes: &[u8]) -> Self {
        Sha256::of(bytes).into()
    }

    /// The version of an open file, from its beginning whatever its position is.
    pub(super) fn of_file(file: &File) -> io::Result<Self> {
        Ok(hash_open_file(file, u64::MAX)?.0.into())
    }
}

impl From<Sha256> for Version {
    fn from(digest: Sha256) -> Self {
        let mut version = [0; 16];
        // 128 bits are enough to distinguish two contents.
        version.copy_from_slice(&digest.0[..16]);
        Self(version)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Content together with its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned<T> {
    /// The content that was read.
    pub content: T,
    /// The version of the whole file at that moment. `None` if it is larger than
    /// [`VERSIONED_BYTES`], or was changed while it was read.
    pub version: Option<Version>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn bytes_and_files_have_the_same_version() {
        let mut file = tempfile::tempfile().unwrap();
        let bytes = vec![b'x'; 200_000];
        file.write_all(&bytes).unwrap();
        assert_eq!(Version::of_file(&file).unwrap(), Version::of(&bytes));
        assert_ne!(Version::of(b"a"), Version::of(b"b"));
        assert_eq!(Version::of(b"abc").to_string(), "ba7816bf8f01cfea414140de5dae2223");
    }
}
