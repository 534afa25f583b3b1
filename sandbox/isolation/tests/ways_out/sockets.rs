//! Ways out through sockets.

use std::io;
use std::mem::size_of;
use std::net::{TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixStream};

use crate::calls::{address, attempt, call, got_out};
use crate::stage::Stage;
use crate::{Attempt, Way};

pub(crate) const WAYS: &[Way] = &[
    ("tcp-connect", |stage| got_out(TcpStream::connect(("127.0.0.1", stage.port)))),
    ("mptcp-connect", |stage| connect(stage, libc::IPPROTO_MPTCP)),
    ("mptcp-bind", |_| bind(libc::IPPROTO_MPTCP)),
    ("tcp-bind", |_| bind(libc::IPPROTO_TCP)),
    ("listen-without-bind", |_| {
        let socket = socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
        attempt(libc::SYS_listen, &[socket, 1])
    }),
    ("fast-open-sendto", |stage| {
        let socket = socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
        let (to, length) = loopback(stage.port);
        let text = *b"out";
        let flags = i64::from(libc::MSG_FASTOPEN);
        attempt(libc::SYS_sendto, &[socket, address(&text), 3, flags, address(&to), length])
    }),
    ("fast-open-sendmsg", |stage| send_message(stage, false)),
    ("fast-open-sendmmsg", |stage| send_message(stage, true)),
    ("fast-open-connect", |stage| {
        let socket = socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
        set_option(socket, libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT, &1_i32.to_ne_bytes())?;
        let (to, length) = loopback(stage.port);
        attempt(libc::SYS_connect, &[socket, address(&to), length])
    }),
    ("tcp-becomes-another-protocol", |stage| {
        let socket = socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
        set_option(socket, libc::IPPROTO_TCP, libc::TCP_ULP, b"smc\0")?;
        let (to, length) = loopback(stage.port);
        attempt(libc::SYS_connect, &[socket, address(&to), length])
    }),
    ("udp-send", |stage| {
        got_out(
            UdpSocket::bind("127.0.0.1:0")
                .and_then(|socket| socket.send_to(b"out", ("127.0.0.1", stage.port))),
        )
    }),
    ("ping-socket", |_| socket(libc::AF_INET, libc::SOCK_DGRAM, libc::IPPROTO_ICMP).map(opened)),
    ("udp-lite", |_| socket(libc::AF_INET, libc::SOCK_DGRAM, libc::IPPROTO_UDPLITE).map(opened)),
    ("sctp", |_| socket(libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_SCTP).map(opened)),
    ("dccp", |_| socket(libc::AF_INET, 6, 33).map(opened)),
    ("raw-socket", |_| socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_RAW).map(opened)),
    ("packet-socket", |_| socket(libc::AF_PACKET, libc::SOCK_RAW, 0).map(opened)),
    ("vsock", |_| socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0).map(opened)),
    ("netlink", |_| socket(libc::AF_NETLINK, libc::SOCK_RAW, 0).map(opened)),
    ("any-other-socket", any_other_socket),
    ("socket-pairs", |_| {
        let pair = [0_i32; 2];
        let families = (0..64).filter(|&family| family != i64::from(libc::AF_UNIX));
        let found = families
            .filter(|&family| call(libc::SYS_socketpair, &[family, 1, 0, address(&pair)]).is_ok());
        some_of(found.map(|family| family.to_string()).collect())
    }),
    ("unix-socket", |stage| got_out(UnixStream::connect(stage.unix_socket()))),
    ("abstract-unix-socket", |stage| {
        let name = SocketAddr::from_abstract_name(&stage.abstract_name).unwrap();
        got_out(UnixStream::connect_addr(&name))
    }),
];

fn opened(_: i64) -> String {
    "the socket was made".into()
}

fn socket(family: i32, kind: i32, protocol: i32) -> Result<i64, String> {
    let made = call(libc::SYS_socket, &[family.into(), kind.into(), protocol.into()]);
    made.map_err(|error| format!("no socket: {error}"))
}

fn loopback(port: u16) -> (libc::sockaddr_in, i64) {
    let address = libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes([127, 0, 0, 1]) },
        sin_zero: [0; 8],
    };
    (address, size_of::<libc::sockaddr_in>() as i64)
}

fn connect(stage: &Stage, protocol: i32) -> Attempt {
    let socket = socket(libc::AF_INET, libc::SOCK_STREAM, protocol)?;
    let (to, length) = loopback(stage.port);
    attempt(libc::SYS_connect, &[socket, address(&to), length])
}

fn bind(protocol: i32) -> Attempt {
    let socket = socket(libc::AF_INET, libc::SOCK_STREAM, protocol)?;
    let (to, length) = loopback(0);
    attempt(libc::SYS_bind, &[socket, address(&to), length])
}

fn set_option(socket: i64, level: i32, option: i32, value: &[u8]) -> Result<(), String> {
    let pointer = value.as_ptr() as i64;
    let arguments = [socket, level.into(), option.into(), pointer, value.len() as i64];
    call(libc::SYS_setsockopt, &arguments).map(drop).map_err(|error| format!("no option: {error}"))
}

/// Connects and sends in one call, with `sendmsg` or with `sendmmsg`.
fn send_message(stage: &Stage, several: bool) -> Attempt {
    let socket = socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
    let (to, length) = loopback(stage.port);
    let text = *b"out";
    let part = libc::iovec { iov_base: address(&text) as *mut _, iov_len: 3 };
    // SAFETY: all zeros is a valid message.
    let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
    message.msg_hdr.msg_name = address(&to) as *mut _;
    message.msg_hdr.msg_namelen = length as u32;
    message.msg_hdr.msg_iov = address(&part) as *mut _;
    message.msg_hdr.msg_iovlen = 1;
    let flags = i64::from(libc::MSG_FASTOPEN);
    match several {
        true => attempt(libc::SYS_sendmmsg, &[socket, address(&message), 1, flags]),
        false => attempt(libc::SYS_sendmsg, &[socket, address(&message.msg_hdr), flags]),
    }
}

/// Tries every family with every type and the first protocols.
fn any_other_socket(_: &Stage) -> Attempt {
    let mut found = Vec::new();
    for family in 0..64 {
        for kind in 0..16 {
            for protocol in (0..40).chain([132, 136, 255, 256, 262]) {
                let ordinary = [libc::AF_INET, libc::AF_INET6, libc::AF_UNIX].contains(&family)
                    && [libc::SOCK_STREAM, libc::SOCK_DGRAM].contains(&kind)
                    && [0, libc::IPPROTO_TCP, libc::IPPROTO_UDP].contains(&protocol);
                // Lists network interfaces; it is a way of its own above.
                let is_route = family == libc::AF_NETLINK && protocol == libc::NETLINK_ROUTE;
                if ordinary || is_route {
                    continue;
                }
                if let Ok(made) = socket(family, kind, protocol) {
                    found.push(format!("{family}/{kind}/{protocol}"));
                    close(made).unwrap();
                }
            }
        }
    }
    some_of(found)
}

fn close(descriptor: i64) -> io::Result<()> {
    call(libc::SYS_close, &[descriptor]).map(drop)
}

fn some_of(found: Vec<String>) -> Attempt {
    match found.is_empty() {
        true => Err("none".into()),
        false => Ok(format!("{} of them, such as {}", found.len(), found[0])),
    }
}
