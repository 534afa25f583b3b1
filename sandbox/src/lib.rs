//! Persistent shells, files and kernels for agents.
