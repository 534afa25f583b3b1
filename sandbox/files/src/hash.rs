//! The SHA-256 of a file, computed in blocks.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use sha2::{Digest, Sha256 as Hasher};

use super::read::{changes, open_file};
use super::{Error, VERSIONED_BYTES, Version, WorkspacePath};

/// Larger files are refused: a sparse file can claim any size, and nothing stops a hash that has begun.
pub const HASHED_BYTES: u64 = 16 << 30;

/// Bytes that are hashed at once.
const BLOCK: usize = 64 * 1024;

/// A SHA-256 digest, shown as lower-case hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sha256(pub(super) [u8; 32]);

impl Sha256 {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Hasher::digest(bytes).into())
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The result of [`hash`]. All members describe the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hashed {
    /// The digest.
    pub sha256: Sha256,
    /// Number of bytes.
    pub size: u64,
    /// The version. None if the file is larger than [`VERSIONED_BYTES`], or was changed while it was read: then
    /// no moment may have had exactly these bytes.
    pub version: Option<Version>,
}

/// Hashes a file of at most [`HASHED_BYTES`] without reading it into memory as a whole.
pub fn hash(path: &WorkspacePath) -> Result<Hashed, Error> {
    let (file, claimed) = open_file(path)?;
    let too_large = |size| Error::TooLargeToHash {
        path: path.as_path().to_path_buf(),
        size,
        limit: HASHED_BYTES,
    };
    if claimed > HASHED_BYTES {
        return Err(too_large(claimed));
    }
    let before = changes(path, &file)?;
    let (sha256, size) =
        hash_open_file(&file, HASHED_BYTES).map_err(|source| path.failed(source))?;
    // It may have grown meanwhile, and files of `/proc` claim to be empty.
    if size > HASHED_BYTES {
        return Err(too_large(size));
    }
    let is_versioned = size <= VERSIONED_BYTES && changes(path, &file)? == before;
    Ok(Hashed { sha256, size, version: is_versioned.then(|| Version::from(sha256)) })
}

/// Hashes an open file from its beginning, whatever its position is, and returns how many bytes were hashed. Stops
/// in the first block that goes beyond `limit`; the digest is then of no use.
pub(super) fn hash_open_file(file: &File, limit: u64) -> io::Result<(Sha256, u64)> {
    let (mut hasher, mut block, mut offset) = (Hasher::new(), vec![0; BLOCK], 0);
    while offset <= limit {
        match file.read_at(&mut block, offset) {
            Ok(0) => break,
            Ok(read) => {
                hasher.update(&block[..read]);
                offset += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok((Sha256(hasher.finalize().into()), offset))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn bytes_and_files_have_the_same_digest() {
        let mut file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..=u8::MAX).cycle().take(3 * BLOCK + 1).collect();
        file.write_all(&bytes).unwrap();
        let hashed = hash_open_file(&file, u64::MAX).unwrap();
        assert_eq!(hashed, (Sha256::of(&bytes), bytes.len() as u64));
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Sha256::of(b"abc").to_string(), abc);
    }

    #[test]
    fn a_file_without_an_end_is_left_at_the_limit() {
        let endless = File::open("/dev/zero").unwrap();
        let (_, read) = hash_open_file(&endless, 3 * BLOCK as u64).unwrap();
        assert_eq!(read, 4 * BLOCK as u64);
    }
}
