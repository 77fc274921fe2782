"""Measuring: data sets, the protocol, systems and peers, tables and figures."""
