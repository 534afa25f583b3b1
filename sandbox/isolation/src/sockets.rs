//! The sockets that a confined program may have: a list of what is allowed, since Linux has some forty families of
//! sockets and protocols, and gets new ones.
//!
//! Landlock judges `connect` and `bind` of plain TCP sockets by their ports. It does not see MPTCP, UDP and the other
//! protocols, a connection that begins with the first data (`MSG_FASTOPEN`), `listen` on a socket without an
//! address, which gets a free port, and TCP sockets that become something else (`TCP_ULP`). The filter forbids these.

use seccompiler::BackendError;

use super::Network;
use super::syscalls::{Argument, Rules, forbid_if};
use Argument::{Is, IsNot, Masked};

/// The bits of a socket's type without its flags.
const TYPE: u64 = 0xF;
const STREAM: u64 = libc::SOCK_STREAM as u64;
const DATAGRAM: u64 = libc::SOCK_DGRAM as u64;

/// Adds the rules for sockets. Pairs of connected Unix sockets, which lead nowhere else, are always allowed.
pub(super) fn forbid(
    rules: &mut Rules,
    network: &Network,
    unix_sockets: bool,
) -> Result<(), BackendError> {
    let unix = libc::AF_UNIX as u64;
    forbid_if(rules, libc::SYS_socketpair, &[IsNot(0, unix)])?;
    let (tcp, udp, ping) = match network {
        Network::Unrestricted => (true, true, true),
        Network::Only { connect, listen, udp } => {
            (!connect.is_empty() || !listen.is_empty(), *udp, false)
        }
    };
    let mut families = Vec::new();
    if unix_sockets {
        families.push(unix);
    }
    if tcp || udp {
        let netlink = libc::AF_NETLINK as u64;
        families.extend([libc::AF_INET as u64, libc::AF_INET6 as u64, netlink]);
        // Programs list network interfaces and addresses through it. Without privileges it changes nothing.
        let route = libc::NETLINK_ROUTE as u64;
        forbid_if(rules, libc::SYS_socket, &[Is(0, netlink), IsNot(2, route)])?;
    }
    let other: Vec<_> = families.iter().map(|&family| IsNot(0, family)).collect();
    match other.is_empty() {
        true => drop(rules.insert(libc::SYS_socket, Vec::new())),
        false => forbid_if(rules, libc::SYS_socket, &other)?,
    }
    if tcp || udp {
        for (family, icmp) in
            [(libc::AF_INET, libc::IPPROTO_ICMP), (libc::AF_INET6, libc::IPPROTO_ICMPV6)]
        {
            let family = Is(0, family as u64);
            // Everything but 1 (stream) and 2 (datagram).
            for (mask, kind) in [(TYPE, 0), (3, 3), (4, 4), (8, 8)] {
                forbid_if(rules, libc::SYS_socket, &[family, Masked(1, mask, kind)])?;
            }
            let stream = [libc::IPPROTO_TCP];
            let datagram = [libc::IPPROTO_UDP, icmp];
            let datagram = if ping { &datagram[..] } else { &datagram[..1] };
            for (kind, allowed, protocols) in
                [(STREAM, tcp, &stream[..]), (DATAGRAM, udp, datagram)]
            {
                let mut comparisons = vec![family, Masked(1, TYPE, kind)];
                if allowed {
                    comparisons.push(IsNot(2, 0));
                    comparisons.extend(protocols.iter().map(|&protocol| IsNot(2, protocol as u64)));
                }
                forbid_if(rules, libc::SYS_socket, &comparisons)?;
            }
        }
    }
    if let Network::Only { listen, .. } = network {
        let fast_open = libc::MSG_FASTOPEN as u64;
        for (call, flags) in
            [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)]
        {
            forbid_if(rules, call, &[Masked(flags, fast_open, fast_open)])?;
        }
        let become_another = [Is(1, libc::IPPROTO_TCP as u64), Is(2, libc::TCP_ULP as u64)];
        forbid_if(rules, libc::SYS_setsockopt, &become_another)?;
        if listen.is_empty() {
            rules.insert(libc::SYS_listen, Vec::new());
        }
    }
    Ok(())
}
