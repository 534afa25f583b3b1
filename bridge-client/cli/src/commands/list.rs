//! `list`: prints this user's running daemons. Reading the directory also removes the files of dead daemons.

use std::sync::Arc;
use std::time::SystemTime;

use bridge_client::Error;
use bridge_client::endpoint::{Age, Candidate};
use bridge_protocol::connection_file::ConnectionFile;
use connection_file::Directory;
use serde_json::{Value, json};

use super::Context;
use crate::failure::Failure;
use crate::output::{self, Style};

pub async fn run(mut context: Context) -> Result<(), Failure> {
    let files = |error| Failure::from(Error::ConnectionFiles(Arc::new(error)));
    let running = Directory::locate(context.environment).map_err(files)?.list().map_err(files)?;
    let now = SystemTime::now();
    if context.output.style == Style::Json {
        let listed: Vec<Value> = running.iter().map(|file| as_json(file, now)).collect();
        return context.output.line(&Value::from(listed).to_string()).await;
    }
    if running.is_empty() {
        output::note("no bridge daemon is running");
        return Ok(());
    }
    for line in table(&running, now) {
        context.output.line(&line).await?;
    }
    Ok(())
}

/// The entry of a daemon, without its token.
fn as_json(file: &ConnectionFile, now: SystemTime) -> Value {
    json!({
        "session": file.session,
        "pid": file.pid,
        "age": Candidate::new(file, now).age.as_secs(),
        "startedAt": file.started_at,
        "directory": file.directory,
        "program": file.program,
        "wantsEditor": file.wants_editor,
        "version": file.version,
        "addr": file.addr,
        "unix": file.unix,
    })
}

fn table(running: &[ConnectionFile], now: SystemTime) -> Vec<String> {
    let head = ["SESSION", "PID", "AGE", "EDITOR", "PROGRAM", "DIRECTORY"].map(str::to_owned);
    let rows = running.iter().map(|file| {
        let candidate = Candidate::new(file, now);
        [
            file.session.to_string(),
            file.pid.to_string(),
            Age(candidate.age).to_string(),
            if file.wants_editor { "wanted" } else { "-" }.to_owned(),
            candidate.program.unwrap_or_else(|| "-".to_owned()),
            candidate.directory,
        ]
    });
    let rows: Vec<[String; 6]> = std::iter::once(head).chain(rows).collect();
    let width = |column: usize| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
    };
    let widths: [usize; 6] = std::array::from_fn(width);
    let line = |row: &[String; 6]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use bridge_protocol::Secret;
    use bridge_protocol::connection_file::SCHEMA;

    use super::*;

    fn file() -> ConnectionFile {
        ConnectionFile {
            schema: SCHEMA,
            session: "k3v9".parse().unwrap(),
            pid: 4711,
            process_start: 1,
            version: "0.1.0".into(),
            addr: "ws://127.0.0.1:40123/".into(),
            unix: None,
            token: Secret::new("c".repeat(64)),
            directory: "/home/ada/orders".into(),
            program: Some("python3".into()),
            wants_editor: true,
            started_at: 1_000,
        }
    }

    #[test]
    fn daemons_are_told_apart_and_their_tokens_stay_secret() {
        let now = UNIX_EPOCH + Duration::from_secs(61);
        assert_eq!(
            table(&[file()], now),
            [
                "SESSION  PID   AGE   EDITOR  PROGRAM  DIRECTORY",
                "k3v9     4711  60 s  wanted  python3  /home/ada/orders",
            ]
        );
        let json = as_json(&file(), now);
        assert_eq!((&json["session"], &json["age"]), (&json!("k3v9"), &json!(60)));
        assert!(!json.to_string().contains("cccc"));
    }
}
