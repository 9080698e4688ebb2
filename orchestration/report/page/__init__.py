"""The report as one HTML file with a viewer for trajectories."""

from skillarena.orchestration.report.page.write import write_page

__all__ = ["write_page"]
