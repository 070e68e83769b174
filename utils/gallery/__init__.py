"""The gallery: every workspace under examples/ that has kernels, judged and measured by the workbench's own commands.

steps      runs compile, check and profiling (or simulated verification) of one workspace, and remembers what was done
summary    one row per workspace, and the means over all
plot       the rows as a chart: one SVG file
"""
