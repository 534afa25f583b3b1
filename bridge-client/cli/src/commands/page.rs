//! `page …`: prints web pages as text.

use std::path::Path;

use bridge_protocol::methods::page::{Browse, BrowseParams};

use super::{Context, decoded, typed};
use crate::cli::page::{self as cli, Verb};
use crate::failure::Failure;
use crate::output::{self, Style};

pub async fn run(context: Context, verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::Browse(arguments) => browse(context, arguments).await,
    }
}

async fn browse(mut context: Context, arguments: cli::Browse) -> Result<(), Failure> {
    let limit_ms = arguments.limit.map(|limit| limit.as_secs_f64() * 1000.0);
    let is_address = arguments.url.starts_with("http:") || arguments.url.starts_with("https:");
    let url = match is_address {
        true => arguments.url,
        false => context.route.file(&arguments.url),
    };
    let result = context.call::<Browse>(&BrowseParams { url, limit_ms }).await?;
    let page = typed::<Browse>(&result)?;
    match context.output.style {
        Style::Json => context.output.json(&result).await?,
        _ if page.text.is_empty() => {}
        _ => context.output.text(&format!("{}\n", page.text.trim_end_matches('\n'))).await?,
    }
    if let Some(file) = &arguments.picture {
        save(file, page.png_base64.as_deref())?;
    }
    match page.error {
        None => Ok(()),
        Some(error) => {
            output::complain(&format!("{} could not be shown in full: {error}", page.url));
            Err(Failure::Command(1))
        }
    }
}

fn save(file: &Path, png: Option<&str>) -> Result<(), Failure> {
    let unusable = |reason: String| Failure::File { path: file.to_owned(), reason };
    let Some(png) = png else {
        let reason = "there is no picture of the page: install Chromium where the runtime is";
        return Err(unusable(reason.to_owned()));
    };
    std::fs::write(file, decoded::<Browse>(png)?).map_err(|error| unusable(error.to_string()))
}
