"""How the program looks: it follows the system and the settings, while it runs.

Knows the settings' names and the application; the colours are those of `app.resources`.
"""

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QGuiApplication, QStyleHints
from PySide6.QtWidgets import QApplication

from app import resources
from app.settings import Settings, Theme


class Appearance(QObject):
    """Dresses the application now, and again when the system or `follow`'s settings change."""

    def __init__(self, app: QApplication, settings: Settings) -> None:
        super().__init__(app)
        self._app = app
        self._hints = QGuiApplication.styleHints()
        self._theme: Theme = "system"
        self._font_size = 0  # percent; nothing is dressed yet
        self._hints.colorSchemeChanged.connect(self._dress)
        # Qt tells of contrast since 6.10
        if hasattr(self._hints, "accessibility"):
            self._hints.accessibility().contrastPreferenceChanged.connect(self._dress)
        self.follow(settings)

    def follow(self, settings: Settings) -> None:
        """Look as these settings say."""
        if (settings.theme, settings.font_size) == (self._theme, self._font_size):
            return
        self._theme, self._font_size = settings.theme, settings.font_size
        self._hints.setColorScheme(_SCHEMES[settings.theme])
        self._dress()

    def _dress(self, *_: object) -> None:
        dark = self._hints.colorScheme() is Qt.ColorScheme.Dark
        scheme: resources.Scheme = "dark" if dark else "light"
        # Where the platform cannot be told a scheme, it goes on with its own.
        if self._theme != "system":
            scheme = self._theme
        resources.apply_theme(
            self._app, scheme, strong=is_high_contrast(self._hints), percent=self._font_size
        )


def is_high_contrast(hints: QStyleHints) -> bool:
    """Whether the system asks for high contrast."""
    if not hasattr(hints, "accessibility"):
        return False
    return hints.accessibility().contrastPreference() is Qt.ContrastPreference.HighContrast


_SCHEMES = {
    "system": Qt.ColorScheme.Unknown,
    "light": Qt.ColorScheme.Light,
    "dark": Qt.ColorScheme.Dark,
}
