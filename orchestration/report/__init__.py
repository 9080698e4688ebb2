"""From ledgers to what people look at: tables, statistics, figures, pages."""
