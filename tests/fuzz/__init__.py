"""Inputs changed at random: whatever they say, one clear error or a right answer, in bounded time and memory."""
