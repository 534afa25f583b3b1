//! Detects media types by the first bytes of a file and by its name.

use std::path::Path;

/// Media types by extension, for images, audio, video and PDF. Sorted by extension.
const BY_EXTENSION: &[(&str, &str)] = &[
    ("avif", "image/avif"),
    ("bmp", "image/bmp"),
    ("flac", "audio/x-flac"),
    ("gif", "image/gif"),
    ("heic", "image/heif"),
    ("ico", "image/vnd.microsoft.icon"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("m4a", "audio/m4a"),
    ("mkv", "video/x-matroska"),
    ("mov", "video/quicktime"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("ogg", "video/ogg"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("tif", "image/tiff"),
    ("tiff", "image/tiff"),
    ("wav", "audio/x-wav"),
    ("webm", "video/webm"),
    ("webp", "image/webp"),
];

/// The media type by the first bytes of a file. A few hundred bytes are enough for most types, 8
/// KiB for all.
pub fn media_type_by_content(head: &[u8]) -> Option<&'static str> {
    infer::get(head).map(|kind| kind.mime_type())
}

/// The media type by the extension, for images, audio, video and PDF.
pub fn media_type_by_name(name: &Path) -> Option<&'static str> {
    let extension = name.extension()?.to_str()?.to_ascii_lowercase();
    let index = BY_EXTENSION.binary_search_by_key(&extension.as_str(), |(name, _)| name).ok()?;
    Some(BY_EXTENSION[index].1)
}

/// Whether a file of this type is returned as data: images, audio, video and PDF.
pub(super) fn is_media(media_type: &str) -> bool {
    let class = media_type.split('/').next().unwrap_or_default();
    matches!(class, "image" | "audio" | "video") || media_type == "application/pdf"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_so_that_each_row_is_found() {
        for (extension, media_type) in BY_EXTENSION {
            let name = format!("x.{}", extension.to_uppercase());
            assert_eq!(media_type_by_name(Path::new(&name)), Some(*media_type));
        }
        assert_eq!(media_type_by_name(Path::new("png")), None);
        assert_eq!(media_type_by_name(Path::new("a.rs")), None);
    }

    #[test]
    fn content_is_recognised() {
        assert_eq!(media_type_by_content(b"\x89PNG\r\n\x1A\n"), Some("image/png"));
        assert_eq!(media_type_by_content(b"%PDF-1.7\n"), Some("application/pdf"));
        assert_eq!(media_type_by_content(b"just text"), None);
    }
}
