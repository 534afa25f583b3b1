//! The format of requests and answers: the length as eight bytes, little-endian, then JSON.

use std::io::{self, Read, Write};

use serde::{Serialize, de::DeserializeOwned};

/// Bytes of the length.
pub(crate) const HEAD: usize = 8;

/// A value as a frame.
pub(crate) fn framed<T: Serialize>(value: &T) -> serde_json::Result<Vec<u8>> {
    let mut frame = vec![0; HEAD];
    serde_json::to_writer(&mut frame, value)?;
    let length = (frame.len() - HEAD) as u64;
    frame[..HEAD].copy_from_slice(&length.to_le_bytes());
    Ok(frame)
}

/// Reads one frame, from a caller that is trusted with the length.
pub(crate) fn read<T: DeserializeOwned>(mut input: impl Read) -> io::Result<T> {
    let mut head = [0; HEAD];
    input.read_exact(&mut head)?;
    let mut body = Vec::new();
    let length = u64::from_le_bytes(head);
    if input.take(length).read_to_end(&mut body)? as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_slice(&body)?)
}

/// Writes one frame.
pub(crate) fn write<T: Serialize>(mut output: impl Write, value: &T) -> io::Result<()> {
    output.write_all(&framed(value)?)?;
    output.flush()
}
