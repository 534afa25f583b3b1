//! `tail`: prints one line for each request that ends.

use bridge_client::Notice;
use bridge_protocol::methods::{MethodType, RequestRecord, Tail};
use jiff::Zoned;
use serde_json::value::RawValue;
use tokio::signal::ctrl_c;
use tokio::sync::broadcast::error::RecvError;

use super::{Context, answer};
use crate::failure::Failure;
use crate::output::{self, Style};

pub async fn run(mut context: Context) -> Result<(), Failure> {
    let client = context.client().await?;
    let mut notices = client.notices();
    answer(client.call_raw(Tail::NAME, None, context.timeout)).await?;
    loop {
        let notice = tokio::select! {
            notice = notices.recv() => notice,
            _ = ctrl_c() => return Err(Failure::Interrupted),
        };
        match notice {
            Ok(Notice::Notification { method, params: Some(params) })
                if method == "bridge/request" =>
            {
                show(&mut context, &params).await?;
            }
            Ok(Notice::Disconnected(error)) if error.is_goodbye() => return Ok(()),
            Ok(Notice::Disconnected(error)) => return Err(error.into()),
            Ok(_) => {}
            Err(RecvError::Lagged(missed)) => {
                output::note(&format!("({missed} requests are not shown: output was too slow)"));
            }
            Err(RecvError::Closed) => return Ok(()),
        }
    }
}

async fn show(context: &mut Context, params: &RawValue) -> Result<(), Failure> {
    match serde_json::from_str::<RequestRecord>(params.get()) {
        Ok(record) if context.output.style != Style::Json => {
            context.output.line(&line(&Zoned::now(), &record)).await
        }
        // Unchanged for programs; also a record that cannot be parsed here.
        _ => context.output.line(params.get()).await,
    }
}

/// A line with time, client, method, runtime, duration and outcome.
fn line(now: &Zoned, record: &RequestRecord) -> String {
    let who = match &*record.client_name {
        "" => format!("client {}", record.client),
        name => format!("{name} {}", record.client),
    };
    let runtime = record.runtime_id.as_deref().unwrap_or("-");
    let ms = record.wait_ms + record.host_ms;
    let method = &record.method;
    let outcome = &record.outcome;
    let now = now.strftime("%T");
    format!("{now}  {who:<18}  {method:<22}  {runtime:<16}  {ms:>9.1} ms  {outcome}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_who_what_where_how_long_and_how_it_ended() {
        let now = "1970-01-01T01:01:01[UTC]".parse().unwrap();
        let mut record = RequestRecord {
            request: 1,
            client: 3,
            client_name: String::new(),
            method: "vscode/chat".into(),
            runtime_id: None,
            outcome: "HostUnavailable".into(),
            wait_ms: 10_000.0,
            host_ms: 0.0,
            request_bytes: 1,
            response_bytes: 1,
        };
        assert_eq!(
            line(&now, &record),
            "01:01:01  client 3            vscode/chat             -                   10000.0 ms  HostUnavailable"
        );
        record.client_name = "orders".into();
        record.runtime_id = Some("w1".into());
        assert!(line(&now, &record).contains("orders 3  "));
    }
}
