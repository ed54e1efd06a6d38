from tests.unit.run.registry.hostile import server

__all__ = ["server"]
