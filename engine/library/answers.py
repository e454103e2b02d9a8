"""What the hub and the network answer instead of what was asked for, in plain words.

Knows status codes, huggingface_hub's errors and how a hub asks to be left alone. Asks nothing.
"""

import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from engine.errors import DownloadError

OFFLINE = "Offline is switched on, so nothing is asked of the network."
OFFLINE_ENVIRONMENT = "Offline: HF_HUB_OFFLINE is set, so nothing is asked of the network."
NO_HUB = "The hub cannot be reached. It was asked for {name}."
UNTRUSTED = (
    "This computer does not trust the certificate of the hub. Behind a company's proxy, add its "
    "root certificate to the system's store."
)
BAD_ADDRESS = (
    "The hub's address (HF_ENDPOINT) or that of the proxy, as this computer has them, cannot be "
    "used."
)
GATED = (
    "{name} is given only to those who asked its owner. Accept the terms at {page} and set your "
    "token (HF_TOKEN)."
)
NOT_THE_HUBS = "The answer is not the hub's. Is there a login page between this computer and {hub}?"
NOT_FOUND = "There is no {name} on the hub, or it is private: then a token is needed."
OUT_OF_ORDER = (502, 503, 504)
RESET = re.compile(r";\s*t=(\d{1,9})\b")
UNTOLD = 60.0  # seconds to wait where the hub does not say how many
INVALID = "Invalid credentials in Authorization header"  # in the hub's own words


class Busy(DownloadError):
    """The hub may answer later: after `seconds` where it asks for them, else it is out of order."""

    seconds: float | None = None


def endpoint() -> str:
    """The hub's address, or that of the mirror which the user has named."""
    from huggingface_hub import constants

    named = os.environ.get("HF_ENDPOINT") or constants.ENDPOINT or "https://huggingface.co"
    return named.rstrip("/")


def page(repository: str) -> str:
    """Where people read of a repository and accept its terms."""
    return _shown(f"{endpoint()}/{repository}")


def _shown(address: str) -> str:
    """An address without the name and password that may stand in it."""
    return re.sub(r"//[^/@]*@", "//", address)


@contextmanager
def said(subject: str) -> Iterator[None]:
    """What the hub and the network answer becomes a DownloadError in plain words."""
    import httpx2
    from huggingface_hub import errors as hub

    try:
        yield
    except hub.GatedRepoError as error:
        raise DownloadError("gated", GATED, name=subject, page=page(subject)) from error
    except hub.RevisionNotFoundError as error:
        raise _error("no_revision", "{name} has no such revision.", subject) from error
    except hub.RepositoryNotFoundError as error:
        raise _error("no_repository", NOT_FOUND, subject) from error
    except (hub.EntryNotFoundError, hub.DisabledRepoError) as error:
        raise _error("gone", "{name} no longer holds what was to be fetched.", subject) from error
    except hub.OfflineModeIsEnabled as error:
        raise DownloadError("offline_environment", OFFLINE_ENVIRONMENT) from error
    except hub.HfHubHTTPError as error:
        raise _http(error, subject) from error
    except (httpx2.TransportError, httpx2.StreamError) as error:
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            raise DownloadError("untrusted", UNTRUSTED) from error
        raise _error("no_hub", NO_HUB, subject) from error
    # Of the rest: redirects without end, data that cannot be unpacked.
    except httpx2.HTTPError as error:
        raise no_hubs() from error


def no_hubs() -> DownloadError:
    """What answered cannot be the hub."""
    return DownloadError("not_the_hubs", NOT_THE_HUBS, hub=_shown(endpoint()))


def _error(code: str, template: str, name: str) -> DownloadError:
    return DownloadError(code, template, name=name)


def _http(error: Any, subject: str) -> DownloadError:
    response = error.response
    status = response.status_code if response is not None else 0
    if status == 401 and response.headers.get("X-Error-Message") != INVALID:
        # Also sent for what does not exist; huggingface_hub knows this of https alone.
        return _error("no_repository", NOT_FOUND, subject)
    if status in (401, 403):
        return _error("refused", "The hub refuses to give {name}: is the token right?", subject)
    if status == 429:
        return limited(_seconds(response.headers))
    kind = Busy if status in OUT_OF_ORDER else DownloadError
    return kind(
        "hub_failed",
        "The hub answered {status} instead of {name}. Try again later.",
        status=status,
        name=subject,
    )


def limited(seconds: float) -> Busy:
    """That so many seconds must go by before the next request."""
    template = "The hub asks to wait {seconds} seconds before the next request."
    busy = Busy("too_many", template, seconds=math.ceil(seconds))
    busy.seconds = seconds
    return busy


def _seconds(headers: Mapping[str, str]) -> float:
    """How long to wait: by Retry-After, in seconds or until a date, or by RateLimit (IETF draft
    ratelimit-headers)."""
    value = headers.get("Retry-After", "")
    if value.isdecimal() and len(value) < 10:
        return float(value)
    with suppress(ValueError, TypeError):
        until = parsedate_to_datetime(value)
        return max(1.0, (until - datetime.now(UTC)).total_seconds())
    reset = RESET.search(headers.get("RateLimit", ""))
    return float(reset[1]) if reset else UNTOLD
