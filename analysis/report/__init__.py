"""What an analysis found, as a report: a page, Markdown, JSON, and the draft of a postmortem."""
