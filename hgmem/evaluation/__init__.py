"""Measuring systems: data sets, what prompts really showed, runs, reports and judges. It works through the client."""
