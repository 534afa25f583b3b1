//! Uploads, downloads, and lists of names.

use std::{
    borrow::Cow,
    fmt::Display,
    fs::File,
    io::{self, Read, Seek as _, Write as _},
    path::{Component, Path, PathBuf},
    sync::{Arc, Weak},
};

use axum::{
    Json,
    body::{Body, Bytes},
    extract::{
        Multipart, Query, State,
        multipart::{Field, MultipartError, MultipartRejection},
        rejection::QueryRejection,
    },
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::stream;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt as _;
use zip::{CompressionMethod, ZipArchive, ZipWriter, write::SimpleFileOptions};

use super::{failure::Failure, server::Server};
use crate::action::ErrorKind;
use sandbox_files::{
    self as files, Depth, Kind, ListOptions, Parents, Workspace, WorkspacePath, WriteOptions,
    create_directory, list, open_file, set_mode, stat, write_from,
};

/// Limit for one upload in bytes.
pub(super) const UPLOAD_BYTES: usize = 4 << 30;
/// Limit for the unpacked size of an uploaded archive in bytes.
const UNPACKED_BYTES: u64 = 16 << 30;
/// Limit for the files of one download in bytes. They are copied to a temporary file first.
const DOWNLOAD_BYTES: u64 = 4 << 30;
/// How many bytes are packed between two checks whether the caller still waits.
const PACKED_AT_ONCE: u64 = 8 << 20;
/// How many nested directories a download follows. Deeper nesting is a loop, or made on purpose.
const DEPTH: usize = 200;
const BLOCK: usize = 64 << 10;

#[derive(Debug, Deserialize)]
pub(super) struct Upload {
    #[serde(default = "root")]
    destination: PathBuf,
    #[serde(default)]
    recursive: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct Uploaded {
    filename: String,
    destination: PathBuf,
    recursive: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct Download {
    path: PathBuf,
}

#[derive(Debug, Deserialize, Default)]
struct List {
    #[serde(default)]
    path: Option<PathBuf>,
}

/// Writes a file to a directory, or unpacks an archive there.
pub(super) async fn upload_file(
    State(server): State<Arc<Server>>,
    query: Result<Query<Upload>, QueryRejection>,
    form: Result<Multipart, MultipartRejection>,
) -> Result<Json<Uploaded>, Failure> {
    let Query(Upload { destination, recursive }) = query.map_err(query_failure)?;
    let form = form.map_err(|rejection| wrong_file(&rejection.body_text()))?;
    let directory = absolute(&server, &destination).await?;
    let (name, content) = spool_file(form).await?;
    let is_archive = name.ends_with(".zip");
    if recursive && !is_archive {
        return Err(Failure::invalid("a recursive upload must be a zip file"));
    }
    let place = directory.absolute().join(&name);
    let workspace = server.workspace.clone();
    blocking(move || match is_archive {
        true => unpack(content, &directory),
        false => {
            let mut content = content;
            write_from(&workspace.path(place)?, &mut content, WriteOptions::default())?;
            Ok(())
        }
    })
    .await?;
    Ok(Json(Uploaded { filename: name, destination, recursive }))
}

/// Sends a directory, or one file, as an archive.
pub(super) async fn download_files(
    State(server): State<Arc<Server>>,
    query: Result<Query<Download>, QueryRejection>,
) -> Result<Response, Failure> {
    let Query(Download { path }) = query.map_err(query_failure)?;
    let place = absolute(&server, &path).await?;
    let workspace = server.workspace.clone();
    let caller = Arc::new(());
    let quota = Quota { left: DOWNLOAD_BYTES, caller: Arc::downgrade(&caller) };
    let (archive, size) = blocking(move || pack(&place, &workspace, quota)).await?;
    drop(caller);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name =
        name.replace(|c: char| c.is_control() || matches!(c, '"' | '\\') || !c.is_ascii(), "_");
    let headers = [
        (header::CONTENT_TYPE, "application/zip".to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}.zip\"")),
        (header::CONTENT_LENGTH, size.to_string()),
    ];
    let blocks = stream::unfold(tokio::fs::File::from_std(archive), |mut file| async {
        let mut block = vec![0; BLOCK];
        match file.read(&mut block).await {
            Ok(0) => None,
            Ok(read) => {
                block.truncate(read);
                Some((Ok(Bytes::from(block)), file))
            }
            Err(error) => Some((Err(error), file)),
        }
    });
    Ok((headers, Body::from_stream(blocks)).into_response())
}

/// The names in a directory: directories first, with a slash. Empty if the directory cannot be
/// listed.
pub(super) async fn list_files(
    State(server): State<Arc<Server>>,
    body: Bytes,
) -> Result<Json<Vec<String>>, Failure> {
    let List { path } = match body.is_empty() {
        true => List::default(),
        false => serde_json::from_slice(&body)
            .map_err(|error| Failure::unprocessable("body", &error.to_string()))?,
    };
    server.executor().await;
    let directory = server.directory.join(path.unwrap_or_default());
    let workspace = server.workspace.clone();
    let names = blocking(move || Ok(names(&workspace, &directory).unwrap_or_default())).await?;
    Ok(Json(names))
}

fn names(workspace: &Workspace, directory: &Path) -> Result<Vec<String>, files::Error> {
    let options = ListOptions { depth: Depth::One, hidden: true, limit: usize::MAX };
    let listing = list(&workspace.path(directory)?, options)?;
    let mut named = Vec::new();
    for entry in listing.entries {
        let kind = match (entry.kind, entry.target) {
            // A link without a target.
            (Kind::Symlink, None) => continue,
            (Kind::Symlink, Some(target)) => target,
            (kind, _) => kind,
        };
        let name = entry.path.to_string_lossy().into_owned();
        named.push((kind != Kind::Directory, name.to_lowercase(), name));
    }
    named.sort();
    let shown =
        named.into_iter().map(|(is_file, _, name)| if is_file { name } else { format!("{name}/") });
    Ok(shown.collect())
}

/// Receives the part `file` into a temporary file without a name.
async fn spool_file(mut form: Multipart) -> Result<(String, File), Failure> {
    while let Some(field) = form.next_field().await.map_err(form_failure)? {
        if field.name() != Some("file") {
            continue;
        }
        // Only the name counts, without any directories before it.
        let name = field.file_name().and_then(|name| name.rsplit(['/', '\\']).next());
        let name = name.filter(|name| !matches!(*name, "" | "." | "..")).map(str::to_owned);
        let name = name.ok_or_else(|| wrong_file("needs a file name"))?;
        return Ok((name, spool(field).await?));
    }
    Err(wrong_file("is missing"))
}

async fn spool(mut field: Field<'_>) -> Result<File, Failure> {
    let full = |error: io::Error| {
        Failure::of(ErrorKind::Internal, format!("cannot store the upload: {error}"))
    };
    let mut file = tempfile::tempfile().map_err(full)?;
    loop {
        match field.chunk().await {
            Ok(Some(chunk)) => {
                file = tokio::task::spawn_blocking(move || file.write_all(&chunk).map(|()| file))
                    .await
                    .map_err(|error| full(io::Error::other(error)))?
                    .map_err(full)?;
            }
            Ok(None) => break,
            Err(error) => return Err(form_failure(error)),
        }
    }
    file.rewind().map_err(full)?;
    Ok(file)
}

/// Unpacks an archive below a directory and nowhere else. Names that lead out, and entries that
/// cannot be read, are refused before anything is written. Links are written as files, and existing
/// links that lead out of the directory are not followed.
fn unpack(archive: File, directory: &WorkspacePath) -> Result<(), Failure> {
    let cannot = |reason: &dyn Display| {
        Failure::invalid(&format!("the zip file cannot be unpacked: {reason}"))
    };
    let broken = |error: zip::result::ZipError| cannot(&error);
    let mut archive = ZipArchive::new(archive).map_err(broken)?;
    let mut total = 0_u64;
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(broken)?;
        let name = entry.name().map(Cow::into_owned).unwrap_or_default();
        if place_of(&name).is_none() {
            return Err(Failure::of(
                ErrorKind::OutsideWorkspace,
                format!("the zip file has an entry that leads out of its directory: {name}"),
            ));
        }
        // The size in an entry's header cannot be trusted, so the content is counted.
        let mut content = (&mut entry).take(UNPACKED_BYTES + 1 - total);
        total += io::copy(&mut content, &mut io::sink()).map_err(|error| cannot(&error))?;
        if total > UNPACKED_BYTES {
            return Err(Failure::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("the zip file unpacks to more than {UNPACKED_BYTES} bytes"),
            ));
        }
    }
    create_directory(directory, Parents::Create)?;
    let inside = directory.confined()?;
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(broken)?;
        let Some(place) = entry.name().ok().and_then(|name| place_of(&name)) else { continue };
        let place = inside.path(place)?;
        if entry.is_dir() {
            create_directory(&place, Parents::Create)?;
            continue;
        }
        let mode = entry.unix_mode().filter(|_| !entry.is_symlink());
        write_from(&place, &mut entry, WriteOptions::default())?;
        if let Some(mode) = mode.filter(|mode| mode & 0o100 != 0) {
            set_mode(&place, mode & 0o777)?;
        }
    }
    Ok(())
}

/// The path of an entry, as Unix reads its name: a backslash and a colon are ordinary characters.
/// `None` if it is not below the destination.
fn place_of(name: &str) -> Option<PathBuf> {
    let mut place = PathBuf::from(".");
    for component in Path::new(name.trim_start_matches('/')).components() {
        match component {
            Component::Normal(name) => place.push(name),
            Component::CurDir => {}
            _ => return None,
        }
    }
    Some(place)
}

/// Packs all files below a path, without compression, into a temporary file without a name.
fn pack(
    path: &WorkspacePath,
    workspace: &Workspace,
    mut quota: Quota,
) -> Result<(File, u64), Failure> {
    let failed = |error: io::Error| {
        Failure::of(ErrorKind::Internal, format!("cannot make the archive: {error}"))
    };
    let mut archive = ZipWriter::new(tempfile::tempfile().map_err(failed)?);
    let top = path.absolute();
    match stat(path, files::Links::Follow)?.kind {
        Kind::Directory => {
            let mut waiting = vec![top.clone()];
            while let Some(directory) = waiting.pop() {
                let options = ListOptions { depth: Depth::One, hidden: true, limit: usize::MAX };
                let listing = match list(&workspace.path(&directory)?, options) {
                    // Skipped, like an unreadable file in `add`.
                    Err(files::Error::Denied { .. } | files::Error::NotFound { .. })
                        if directory != top =>
                    {
                        continue;
                    }
                    listing => listing?,
                };
                for entry in listing.entries {
                    let place = directory.join(&entry.path);
                    let depth = place.components().count() - top.components().count();
                    match entry.target.unwrap_or(entry.kind) {
                        // Links to directories are not followed: they may form a loop.
                        Kind::Directory if entry.kind == Kind::Directory && depth < DEPTH => {
                            waiting.push(place);
                        }
                        Kind::File => add(&mut archive, &mut quota, workspace, &place, &top)?,
                        _ => {}
                    }
                }
            }
        }
        _ => {
            let above = top.parent().unwrap_or(Path::new("/"));
            add(&mut archive, &mut quota, workspace, &top, above)?;
        }
    }
    let mut file = archive.finish().map_err(|error| failed(error.into()))?;
    let size = file.seek(io::SeekFrom::End(0)).map_err(failed)?;
    file.rewind().map_err(failed)?;
    Ok((file, size))
}

/// The number of bytes that a download may still pack, as long as its caller waits.
struct Quota {
    left: u64,
    /// Gone when the caller no longer waits.
    caller: Weak<()>,
}

impl Quota {
    /// Copies a file. A failure if it has more bytes than are left, or nobody waits any more.
    fn copy(&mut self, file: &mut File, archive: &mut ZipWriter<File>) -> io::Result<()> {
        loop {
            if self.caller.strong_count() == 0 {
                return Err(io::Error::other("the caller has gone"));
            }
            let most = PACKED_AT_ONCE.min(self.left.saturating_add(1));
            let copied = io::copy(&mut file.take(most), archive)?;
            let Some(left) = self.left.checked_sub(copied) else {
                return Err(io::ErrorKind::FileTooLarge.into());
            };
            self.left = left;
            if copied < most {
                return Ok(());
            }
        }
    }
}

fn add(
    archive: &mut ZipWriter<File>,
    quota: &mut Quota,
    workspace: &Workspace,
    place: &Path,
    top: &Path,
) -> Result<(), Failure> {
    let opened = open_file(&workspace.path(place)?);
    // A file that cannot be read must not fail the whole download.
    let (mut file, size) = match opened {
        Err(files::Error::Denied { .. } | files::Error::NotFound { .. }) => return Ok(()),
        opened => opened?,
    };
    let name = place.strip_prefix(top).unwrap_or(place).to_string_lossy();
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Stored)
        .large_file(size >= u64::from(u32::MAX));
    if size > quota.left {
        return Err(too_much());
    }
    let added = archive.start_file(name.as_ref(), options).map_err(io::Error::from);
    added.and_then(|()| quota.copy(&mut file, archive)).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => too_much(),
        _ => Failure::of(ErrorKind::Internal, format!("cannot pack {}: {error}", place.display())),
    })
}

fn too_much() -> Failure {
    let reason = format!("the files have more than {DOWNLOAD_BYTES} bytes: download parts of them");
    Failure::new(StatusCode::PAYLOAD_TOO_LARGE, reason)
}

async fn absolute(server: &Server, path: &Path) -> Result<WorkspacePath, Failure> {
    if !path.is_absolute() {
        return Err(Failure::invalid(&format!("{} must be an absolute path", path.display())));
    }
    server.executor().await;
    Ok(server.workspace.path(path)?)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(Failure::of(ErrorKind::Internal, error.to_string())))
}

fn wrong_file(problem: &str) -> Failure {
    Failure::unprocessable("body.file", problem)
}

/// The failure for a form that is incomplete, malformed or too large.
fn form_failure(error: MultipartError) -> Failure {
    match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Failure::new(error.status(), error.body_text()),
        _ => wrong_file(&error.body_text()),
    }
}

fn query_failure(rejection: QueryRejection) -> Failure {
    Failure::unprocessable("query", &rejection.body_text())
}

fn root() -> PathBuf {
    "/".into()
}
