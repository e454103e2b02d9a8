; The installer for Windows, by Inno Setup 6.3 or newer, out of dist\slipstream. README.md says how.
; Not run yet: no Windows machine was there to run it on.

#ifndef Version
  #error Name the version: iscc /DVersion=...
#endif
#define Bundle "..\..\dist\slipstream"

[Setup]
; The same for all versions: by it a newer one finds the older one and takes its place.
AppId={{9FBB6FAE-4F32-4593-BA78-184E26469039}
AppName=Slipstream
AppVersion={#Version}
AppPublisher=The Slipstream developers
VersionInfoVersion={#Version}
LicenseFile=..\..\LICENSE
OutputDir=..\..\dist
OutputBaseFilename=slipstream-{#Version}-windows-x86_64
ArchitecturesAllowed=x64compatible
ArchitecturesInstallIn64BitMode=x64compatible
MinVersion=10.0.17763
; For this user alone: no administrator is asked, and {autopf} is %LOCALAPPDATA%\Programs.
PrivilegesRequired=lowest
DefaultDirName={autopf}\Slipstream
DisableProgramGroupPage=yes
UninstallDisplayName=Slipstream
UninstallDisplayIcon={app}\slipstream.exe
CloseApplications=yes
Compression=lzma2
SolidCompression=yes
LZMAUseSeparateProcess=yes
WizardStyle=modern
; With a code signing certificate (OV or EV) in the Windows store; without one SmartScreen warns:
; SignTool=signtool sign /fd sha256 /tr http://timestamp.example/ /td sha256 /n "NAME" $f
; SignedUninstaller=yes

[Languages]
Name: "en"; MessagesFile: "compiler:Default.isl"
Name: "de"; MessagesFile: "compiler:Languages\German.isl"

[Tasks]
Name: "desktopicon"; Description: "{cm:CreateDesktopIcon}"; Flags: unchecked

[InstallDelete]
; An older version goes as a whole: one of its files that is left would be loaded with the new ones.
Type: filesandordirs; Name: "{app}\_internal"

[Files]
Source: "{#Bundle}\*"; DestDir: "{app}"; Flags: ignoreversion recursesubdirs createallsubdirs

[Icons]
Name: "{autoprograms}\Slipstream"; Filename: "{app}\slipstream.exe"
Name: "{autodesktop}\Slipstream"; Filename: "{app}\slipstream.exe"; Tasks: desktopicon

[Registry]
; One of the programs that a GGUF file can be opened with, not the one that it is opened with.
Root: HKA; Subkey: "Software\Classes\.gguf\OpenWithProgids"; ValueType: string; ValueName: "Slipstream.gguf"; ValueData: ""; Flags: uninsdeletevalue
Root: HKA; Subkey: "Software\Classes\Slipstream.gguf\shell\open\command"; ValueType: string; ValueData: """{app}\slipstream.exe"" ""%1"""
Root: HKA; Subkey: "Software\Classes\Slipstream.gguf"; ValueType: none; Flags: uninsdeletekey

[Run]
Filename: "{app}\slipstream.exe"; Description: "{cm:LaunchProgram,Slipstream}"; Flags: nowait postinstall skipifsilent

; Nothing is said of chats, settings and models: what was not installed stays when this is uninstalled.
