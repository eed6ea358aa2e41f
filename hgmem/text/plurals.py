"""Numbers of things in messages."""


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun, such as "1,200 chunks". `many` is an irregular plural."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
