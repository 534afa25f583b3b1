//! Privileges of root (capabilities), which Landlock does not take away.

use rustix::io::{Errno, Result};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities,
};

/// Takes capabilities from the calling thread and everything that it executes or starts: the program of root gets
/// at most what is in the bounding set. Fails if one would remain.
pub(super) fn drop_for_ever(dropped: CapabilitySet) -> Result<()> {
    clear_ambient_capability_set()?;
    let held = capabilities(None)?;
    // A program of an ordinary user can get privileges only from a file, which `no_new_privs` prevents.
    if held.effective.contains(CapabilitySet::SETPCAP) {
        for number in 0..u64::BITS {
            let capability = CapabilitySet::from_bits_retain(1 << number);
            if !dropped.contains(capability) {
                continue;
            }
            match remove_capability_from_bounding_set(capability) {
                // Linux has no capability of this number.
                Ok(()) | Err(Errno::INVAL) => {}
                Err(error) => return Err(error),
            }
        }
    }
    let left = |set: CapabilitySet| CapabilitySet::from_bits_retain(set.bits() & !dropped.bits());
    set_capabilities(
        None,
        CapabilitySets {
            effective: left(held.effective),
            permitted: left(held.permitted),
            inheritable: CapabilitySet::empty(),
        },
    )
}

/// All capabilities, also those that are newer than this program.
pub(super) fn all() -> CapabilitySet {
    CapabilitySet::from_bits_retain(u64::MAX)
}
