"""The simulator: a workspace's kernels and bindings, unchanged, built for the CPU. See docs/simulator.md."""
