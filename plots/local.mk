# plots/ -- templates of the figures, installed for mpsim plot.
dist_plots_DATA += plots/accumulation.gp plots/heatmap.gp plots/histogram.gp plots/memory.gp plots/ranges.gp plots/ruler.gp plots/scales.gp plots/sqnr.gp plots/steps.gp plots/style.gp plots/sweep.gp plots/training.gp
EXTRA_DIST += plots/README.md plots/accumulation.png plots/example.png plots/sweep.png
EXTRA_DIST += plots/curves.gp plots/dots.gp # of data/experiments/transformer
EXTRA_DIST += plots/gallery.sh plots/papers.py plots/published.sh plots/published.gp # make figures; papers.py: doc/gallery.md
