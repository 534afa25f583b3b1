//! A web server for one request.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
};

/// Serves a page for one request, and returns its address.
pub fn serve_page(html: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/page", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            client.read_exact(&mut byte).unwrap();
            request.push(byte[0]);
        }
        write!(
            client,
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{html}",
            html.len()
        )
        .unwrap();
    });
    url
}
