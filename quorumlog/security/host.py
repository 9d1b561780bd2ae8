"""The one text that stands for an address, in access rules, in quotas and of a connection; whether it is far away."""

from __future__ import annotations


def host_text(host: str) -> str:
    """An IPv4 address mapped into IPv6 as IPv4, other IPv6 addresses in their short form (RFC 5952); else unchanged.

    Java writes an IPv6 address with all eight groups, so rules that its tools made have that form. A host is compared
    as text: there are no names and no networks (KIP-11).
    """
    if ":" not in host:
        return host
    from ipaddress import IPv6Address  # the module is loaded where somebody uses IPv6

    try:
        address = IPv6Address(host)
    except ValueError:
        return host
    return str(address.ipv4_mapped or address)


def is_loopback(address: str) -> bool:
    """What is sent to it stays on the machine. False for what is no address."""
    from ipaddress import ip_address

    try:
        return ip_address(host_text(address)).is_loopback
    except ValueError:
        return False


def is_near(host: str) -> bool:
    """As `is_loopback`; a name counts if it is localhost: no other is looked up."""
    return host.lower() == "localhost" or is_loopback(host)
