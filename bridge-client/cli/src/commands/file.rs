//! `file …`: files of a runtime's workspace.

use base64::prelude::{BASE64_STANDARD, Engine};
use bridge_protocol::methods::file::{
    self, Copy, FileKind, Glob, Grep, GrepParams, Hash, MakeDirectory, MakeDirectoryParams, Move,
    PathParams, Remove, RemoveDirectory, RemoveParams, SearchParams, Stat, StatParams,
    TransferParams, Version,
};

use super::{Context, decoded, done, shown, typed};
use crate::cli::file::{self as cli, Verb};
use crate::failure::Failure;
use crate::output::{self, Style};
use crate::params;

pub async fn run(mut context: Context, verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::Read(arguments) => read(context, arguments).await,
        Verb::Write { path, content, new, version } => {
            let content = match &*content {
                "-" => String::from_utf8(params::read_stdin_bytes()?),
                _ => Ok(content),
            };
            let (text, base64) = match content {
                Ok(text) => (Some(text), None),
                Err(binary) => (None, Some(BASE64_STANDARD.encode(binary.as_bytes()))),
            };
            let (path, if_version) = (context.route.file(&path), version.if_version.map(Version));
            let params =
                file::WriteParams { path, text, base64, replace: !new, mode: None, if_version };
            shown::<file::Write>(context, &params, |written| {
                note_owner(written.owner_kept);
                String::new()
            })
            .await
        }
        Verb::Edit(cli::EditFile { edit, version }) => {
            let cli::Edit { path, old, insert_after, new } = edit;
            let params = file::EditParams {
                path: context.route.file(&path),
                old_text: old,
                insert_after,
                new_text: new,
                if_version: version.if_version.map(Version),
            };
            shown::<file::Edit>(context, &params, change).await
        }
        Verb::Undo { path, force } => {
            let params = file::UndoParams { path: context.route.file(&path), force };
            shown::<file::Undo>(context, &params, change).await
        }
        Verb::List { path, all, nested, limit } => {
            let path = context.route.file(&path);
            let params = file::ListParams { path, nested, hidden: all, limit };
            shown::<file::List>(context, &params, |listing| {
                note_missing(listing.truncated, listing.unreadable.len());
                let line = |path: &str, kind| match kind {
                    FileKind::Directory => format!("{path}/"),
                    FileKind::Symlink => format!("{path}@"),
                    _ => path.to_owned(),
                };
                lines(listing.entries.iter().map(|entry| line(&entry.path, entry.kind)))
            })
            .await
        }
        Verb::Glob { pattern, path, filter } => {
            let cli::Filter { hidden, ignored, limit } = filter;
            let path = context.route.file(&path);
            let params = SearchParams { path, pattern, hidden, ignored, limit };
            shown::<Glob>(context, &params, |found| {
                note_missing(found.truncated, found.unreadable);
                lines(found.paths.into_iter())
            })
            .await
        }
        Verb::Grep(arguments) => grep(context, arguments).await,
        Verb::Stat { path, no_follow } => {
            let path = context.route.file(&path);
            let result = context.call::<Stat>(&StatParams { path, follow: !no_follow }).await?;
            context.output.json(&result).await
        }
        Verb::Hash { path } => {
            let path = context.route.file(&path);
            shown::<Hash>(context, &PathParams { path }, |hashed| hashed.sha256).await
        }
        Verb::Mkdir { path } => {
            let path = context.route.file(&path);
            done::<MakeDirectory>(context, &MakeDirectoryParams { path, parents: true }).await
        }
        Verb::Rmdir { path } => {
            let path = context.route.file(&path);
            done::<RemoveDirectory>(context, &PathParams { path }).await
        }
        Verb::Rm { path, recursive } => {
            let path = context.route.file(&path);
            done::<Remove>(context, &RemoveParams { path, recursive }).await
        }
        Verb::Mv(arguments) => {
            let params = transfer(&mut context, &arguments);
            done::<Move>(context, &params).await
        }
        Verb::Cp(arguments) => {
            let params = transfer(&mut context, &arguments);
            shown::<Copy>(context, &params, |copied| {
                note_owner(copied.owner_kept);
                String::new()
            })
            .await
        }
    }
}

async fn read(mut context: Context, arguments: cli::Read) -> Result<(), Failure> {
    let (first_line, last_line) = match &arguments.lines {
        Some(range) => line_range(range)?,
        None => (None, None),
    };
    let cli::Read { path, tail, limit_bytes, .. } = arguments;
    let path = context.route.file(&path);
    let params = file::ReadParams { path, first_line, last_line, tail, raw: false, limit_bytes };
    let result = context.call::<file::Read>(&params).await?;
    if context.output.style == Style::Json {
        return context.output.json(&result).await;
    }
    let binary = match typed::<file::Read>(&result)? {
        file::ReadResult::Text { text, .. } => return context.output.text(&text).await,
        file::ReadResult::Media { base64, .. } | file::ReadResult::Raw { base64, .. } => {
            Some(base64)
        }
        file::ReadResult::Binary { .. } => None,
    };
    if context.output.style == Style::Terminal {
        let reason = "it is no text: send the output to a file or a pipe".to_owned();
        return Err(Failure::File { path: params.path.into(), reason });
    }
    let base64 = match binary {
        Some(base64) => base64,
        None => {
            let params = file::ReadParams { raw: true, ..params };
            match typed::<file::Read>(&context.call::<file::Read>(&params).await?)? {
                file::ReadResult::Raw { base64, .. } => base64,
                _ => String::new(),
            }
        }
    };
    context.output.bytes(&decoded::<file::Read>(&base64)?).await
}

async fn grep(context: Context, arguments: cli::Grep) -> Result<(), Failure> {
    let cli::Filter { hidden, ignored, limit } = arguments.filter;
    let (path, pattern) = (context.route.file(&arguments.path), arguments.pattern);
    let params = GrepParams {
        search: SearchParams { path, pattern, hidden, ignored, limit },
        literal: arguments.literal,
        ignore_case: arguments.ignore_case,
        files: arguments.files,
        context: arguments.context,
    };
    shown::<Grep>(context, &params, |grepped| {
        note_missing(grepped.truncated, grepped.unreadable);
        lines(grepped.lines.into_iter().map(|line| {
            let path = if line.path.is_empty() { &arguments.path } else { &line.path };
            let mark = if line.matches { ':' } else { '-' };
            format!("{path}{mark}{}{mark}{}", line.line, line.text)
        }))
    })
    .await
}

/// The parameters of a move or copy. They have no `path`, so the first of the two chooses the runtime.
fn transfer(context: &mut Context, arguments: &cli::Transfer) -> TransferParams {
    let (from, to) = (context.route.file(&arguments.from), context.route.file(&arguments.to));
    context.route = context.route.by(&from);
    TransferParams { from, to, replace: arguments.replace }
}

fn lines(lines: impl Iterator<Item = String>) -> String {
    lines.collect::<Vec<_>>().join("\n")
}

fn change(edited: file::EditResult) -> String {
    note_owner(edited.owner_kept);
    edited.diff.trim_end_matches('\n').to_owned()
}

fn note_owner(kept: bool) {
    if !kept {
        output::note(
            "(the file belongs to the daemon's user now, who may not give it to its former owner)",
        );
    }
}

fn note_missing(truncated: bool, unreadable: usize) {
    if truncated {
        output::note("(there are more: raise --limit, or look in a smaller place)");
    }
    if unreadable > 0 {
        output::note(&format!("(files or directories that could not be read: {unreadable})"));
    }
}

fn line_range(range: &str) -> Result<(Option<usize>, Option<usize>), Failure> {
    let number = |text: &str| match text {
        "" => Some(None),
        text => text.parse().ok().map(Some),
    };
    range
        .split_once(':')
        .and_then(|(first, last)| Some((number(first)?, number(last)?)))
        .ok_or_else(|| Failure::Usage(format!("--lines {range:?} is no FIRST:LAST, such as 10:20")))
}
