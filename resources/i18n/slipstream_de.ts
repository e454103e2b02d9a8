<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="de" sourcelanguage="en">
<context>
    <name>About</name>
    <message>
        <source>This build names no place where new versions are announced.</source>
        <translation>Dieses Programm nennt keinen Ort, an dem neue Versionen bekannt gegeben werden.</translation>
    </message>
    <message>
        <source>{version}, {build} build</source>
        <translation>{version}, gebaut für {build}</translation>
    </message>
    <message>
        <source>Looking…</source>
        <translation>Es wird nachgesehen …</translation>
    </message>
    <message>
        <source>Version {version} is there.</source>
        <translation>Version {version} ist da.</translation>
    </message>
    <message>
        <source>This is the newest version.</source>
        <translation>Das ist die neueste Version.</translation>
    </message>
</context>
<context>
    <name>AboutDialog</name>
    <message>
        <source>About Slipstream</source>
        <translation>Über Slipstream</translation>
    </message>
    <message>
        <source>Open its page</source>
        <translation>Ihre Seite öffnen</translation>
    </message>
    <message>
        <source>Look for a new version</source>
        <translation>Nach einer neuen Version sehen</translation>
    </message>
    <message>
        <source>Third-party notice</source>
        <translation>Hinweise zu Dritten</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
    <message>
        <source>Local language models, made fast by speculative decoding</source>
        <translation>Lokale Sprachmodelle, schnell durch spekulatives Dekodieren</translation>
    </message>
    <message>
        <source>Version</source>
        <translation>Version</translation>
    </message>
    <message>
        <source>not installed</source>
        <translation>nicht installiert</translation>
    </message>
    <message>
        <source>Licence</source>
        <translation>Lizenz</translation>
    </message>
    <message>
        <source>PyTorch</source>
        <translation>PyTorch</translation>
    </message>
    <message>
        <source>No program here opens this page:</source>
        <translation>Kein Programm hier öffnet diese Seite:</translation>
    </message>
    <message>
        <source>Reading…</source>
        <translation>Es wird gelesen …</translation>
    </message>
</context>
<context>
    <name>Acceptance</name>
    <message>
        <source>tokens a round</source>
        <translation>Tokens je Runde</translation>
    </message>
    <message>
        <source>Acceptance</source>
        <translation>Annahme</translation>
    </message>
</context>
<context>
    <name>AnswerTurn</name>
    <message>
        <source>Answer</source>
        <translation>Antwort</translation>
    </message>
</context>
<context>
    <name>AttachmentChip</name>
    <message>
        <source>Attached file {name}, {size}</source>
        <translation>Angehängte Datei {name}, {size}</translation>
    </message>
</context>
<context>
    <name>Bars</name>
    <message>
        <source>Acceptance by position</source>
        <translation>Annahme nach Position</translation>
    </message>
    <message>
        <source>By position</source>
        <translation>Nach Position</translation>
    </message>
</context>
<context>
    <name>Bubble</name>
    <message>
        <source>Your message</source>
        <translation>Eigene Nachricht</translation>
    </message>
    <message>
        <source>Edit the message</source>
        <translation>Nachricht bearbeiten</translation>
    </message>
    <message>
        <source>Nothing can be asked now. The text stays here.</source>
        <translation>Jetzt kann nichts gefragt werden. Der Text bleibt hier.</translation>
    </message>
</context>
<context>
    <name>Chat</name>
    <message>
        <source>New chat</source>
        <translation>Neuer Chat</translation>
    </message>
    <message>
        <source>The last message alone fills the context.</source>
        <translation>Schon die letzte Nachricht füllt den Kontext.</translation>
    </message>
    <message>
        <source>The last question has no answer yet.</source>
        <translation>Die letzte Frage hat noch keine Antwort.</translation>
    </message>
    <message>
        <source>This chat was answered by {model}.</source>
        <translation>In diesem Chat hat {model} geantwortet.</translation>
    </message>
</context>
<context>
    <name>Chip</name>
    <message>
        <source>Remove {name}, {about}</source>
        <translation>{name} entfernen, {about}</translation>
    </message>
    <message>
        <source>Remove</source>
        <translation>Entfernen</translation>
    </message>
</context>
<context>
    <name>Chips</name>
    <message>
        <source>Attached files</source>
        <translation>Angehängte Dateien</translation>
    </message>
</context>
<context>
    <name>Column</name>
    <message>
        <source>Ask something. What you write stays on this computer.</source>
        <translation>Etwas fragen. Was hier steht, bleibt auf diesem Computer.</translation>
    </message>
    <message>
        <source>Chats</source>
        <translation>Chats</translation>
    </message>
    <message>
        <source>New chat</source>
        <translation>Neuer Chat</translation>
    </message>
    <message>
        <source>Import and export</source>
        <translation>Import und Export</translation>
    </message>
</context>
<context>
    <name>CommandCard</name>
    <message>
        <source>Command</source>
        <translation>Befehl</translation>
    </message>
    <message>
        <source>Copy as llama-server command</source>
        <translation>Als Befehl für llama-server kopieren</translation>
    </message>
    <message>
        <source>Copy as vLLM command</source>
        <translation>Als Befehl für vLLM kopieren</translation>
    </message>
</context>
<context>
    <name>Compare</name>
    <message>
        <source>Saved as {name}</source>
        <translation>Gespeichert als {name}</translation>
    </message>
</context>
<context>
    <name>CompareDialog</name>
    <message>
        <source>Compare drafts</source>
        <translation>Entwürfe vergleichen</translation>
    </message>
    <message>
        <source>Prompts</source>
        <translation>Aufgaben</translation>
    </message>
    <message>
        <source>Answer length</source>
        <translation>Antwortlänge</translation>
    </message>
    <message>
        <source>Runs</source>
        <translation>Durchgänge</translation>
    </message>
    <message>
        <source>{count} of each</source>
        <translation>je {count}</translation>
    </message>
    <message>
        <source>Run</source>
        <translation>Starten</translation>
    </message>
    <message>
        <source>Target</source>
        <translation>Zielmodell</translation>
    </message>
    <message>
        <source>Done</source>
        <translation>Erledigt</translation>
    </message>
    <message>
        <source>Export…</source>
        <translation>Exportieren …</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
    <message>
        <source>Use the fastest</source>
        <translation>Den schnellsten verwenden</translation>
    </message>
    <message>
        <source>A file…</source>
        <translation>Eine Datei …</translation>
    </message>
    <message>
        <source>Run again</source>
        <translation>Wiederholen</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Prompts (*.jsonl *.json *.parquet);;All files (*)</source>
        <translation>Aufgaben (*.jsonl *.json *.parquet);;Alle Dateien (*)</translation>
    </message>
    <message>
        <source>Export</source>
        <translation>Exportieren</translation>
    </message>
</context>
<context>
    <name>CompareTable</name>
    <message>
        <source>Draft</source>
        <translation>Entwurf</translation>
    </message>
</context>
<context>
    <name>Composer</name>
    <message>
        <source>Attach text files</source>
        <translation>Textdateien anhängen</translation>
    </message>
    <message>
        <source>You can write the next message while this one is answered</source>
        <translation>Die nächste Nachricht lässt sich schon während der Antwort schreiben</translation>
    </message>
    <message>
        <source>Message</source>
        <translation>Nachricht</translation>
    </message>
    <message>
        <source>Reading</source>
        <translation>Wird gelesen</translation>
    </message>
    <message>
        <source>Pasted text</source>
        <translation>Eingefügter Text</translation>
    </message>
    <message>
        <source>The text was cut at {count} characters.</source>
        <translation>Der Text wurde nach {count} Zeichen gekürzt.</translation>
    </message>
    <message>
        <source>Pictures cannot be attached. Only text can.</source>
        <translation>Bilder lassen sich nicht anhängen, nur Text.</translation>
    </message>
</context>
<context>
    <name>ComposerField</name>
    <message>
        <source>Message</source>
        <translation>Nachricht</translation>
    </message>
</context>
<context>
    <name>ContextMeter</name>
    <message>
        <source>Context used</source>
        <translation>Kontext belegt</translation>
    </message>
    <message>
        <source>{used} of {context} tokens: more than fits</source>
        <translation>{used} von {context} Tokens: mehr, als passt</translation>
    </message>
    <message>
        <source>Of them, {tokens} are being written and not sent yet.</source>
        <translation>Davon werden {tokens} gerade geschrieben und sind noch nicht gesendet.</translation>
    </message>
    <message>
        <source>{used} of {context} tokens used</source>
        <translation>{used} von {context} Tokens belegt</translation>
    </message>
</context>
<context>
    <name>Conversations</name>
    <message>
        <source>There is no chat with this id.</source>
        <translation>Einen Chat mit dieser Kennung gibt es nicht.</translation>
    </message>
    <message>
        <source>Deleted “{title}”.</source>
        <translation>„{title}“ gelöscht.</translation>
    </message>
    <message>
        <source>Slipstream chats</source>
        <translation>Chats aus Slipstream</translation>
    </message>
    <message>
        <source>Exported to {file}.</source>
        <translation>Nach {file} exportiert.</translation>
    </message>
    <message>
        <source>Exported {count} chats to {file}.</source>
        <translation>{count} Chats nach {file} exportiert.</translation>
    </message>
    <message>
        <source>Imported {count} chat.</source>
        <translation>{count} Chat importiert.</translation>
    </message>
    <message>
        <source>Imported {count} chats.</source>
        <translation>{count} Chats importiert.</translation>
    </message>
    <message>
        <source>There is no chat in this file that is not here already.</source>
        <translation>Diese Datei enthält keinen Chat, der nicht schon hier ist.</translation>
    </message>
    <message>
        <source>What was learned is forgotten.</source>
        <translation>Das Gelernte ist vergessen.</translation>
    </message>
    <message>
        <source>No chat has “{text}” in it.</source>
        <translation>Kein Chat enthält „{text}“.</translation>
    </message>
    <message>
        <source>No chats yet. They are kept here, on this computer only.</source>
        <translation>Noch keine Chats. Gespeichert wird nur hier, auf diesem Computer.</translation>
    </message>
</context>
<context>
    <name>CopyCode</name>
    <message>
        <source>Copy</source>
        <translation>Kopieren</translation>
    </message>
    <message>
        <source>Copy the code</source>
        <translation>Code kopieren</translation>
    </message>
</context>
<context>
    <name>DetailPane</name>
    <message>
        <source>Models of this repository</source>
        <translation>Modelle dieses Repositorys</translation>
    </message>
    <message>
        <source>Get</source>
        <translation>Holen</translation>
    </message>
    <message>
        <source>Another folder…</source>
        <translation>Anderer Ordner …</translation>
    </message>
    <message>
        <source>Downloads go there from then on</source>
        <translation>Downloads gehen fortan dorthin</translation>
    </message>
    <message>
        <source>Retry</source>
        <translation>Noch einmal</translation>
    </message>
    <message>
        <source>Open its page</source>
        <translation>Seite öffnen</translation>
    </message>
    <message>
        <source>In the browser</source>
        <translation>Im Browser</translation>
    </message>
    <message>
        <source>Several models are here. Choose one.</source>
        <translation>Hier sind mehrere Modelle. Eines wählen.</translation>
    </message>
    <message>
        <source>Reading what it holds</source>
        <translation>Inhalt wird gelesen</translation>
    </message>
    <message>
        <source>Folder for downloads</source>
        <translation>Ordner für Downloads</translation>
    </message>
</context>
<context>
    <name>Downloads</name>
    <message>
        <source>{name} (repair)</source>
        <translation>{name} (Reparatur)</translation>
    </message>
    <message>
        <source>Waiting</source>
        <translation>Wartet</translation>
    </message>
    <message>
        <source>Stopping</source>
        <translation>Wird gestoppt</translation>
    </message>
    <message>
        <source>{name}, in {folder}</source>
        <translation>{name}, in {folder}</translation>
    </message>
    <message>
        <source>Starting the download</source>
        <translation>Der Download beginnt</translation>
    </message>
    <message>
        <source>Checking what is here, {share}</source>
        <translation>Vorhandenes wird geprüft, {share}</translation>
    </message>
    <message>
        <source>In the library</source>
        <translation>In der Bibliothek</translation>
    </message>
    <message>
        <source>Paused</source>
        <translation>Angehalten</translation>
    </message>
    <message>
        <source>Paused at {amount}</source>
        <translation>Angehalten bei {amount}</translation>
    </message>
</context>
<context>
    <name>DraftOptions</name>
    <message>
        <source>Auto</source>
        <translation>Automatisch</translation>
    </message>
    <message>
        <source>As many as are expected to pay, 8 at most</source>
        <translation>So viele, wie sich voraussichtlich lohnen, höchstens 8</translation>
    </message>
    <message>
        <source>Draft length</source>
        <translation>Entwurfslänge</translation>
    </message>
    <message>
        <source>Verification</source>
        <translation>Prüfung</translation>
    </message>
    <message>
        <source>Precisions of the draft</source>
        <translation>Genauigkeiten des Entwurfs</translation>
    </message>
    <message>
        <source>Precision of the draft</source>
        <translation>Genauigkeit des Entwurfs</translation>
    </message>
    <message>
        <source>automatic</source>
        <translation>automatisch</translation>
    </message>
    <message>
        <source>Same text with any draft</source>
        <translation>Gleicher Text mit jedem Entwurf</translation>
    </message>
    <message>
        <source>A seed fixes the answer, whatever drafts</source>
        <translation>Ein Startwert legt die Antwort fest, egal wer entwirft</translation>
    </message>
    <message>
        <source>Same odds, different text</source>
        <translation>Gleiche Wahrscheinlichkeiten, anderer Text</translation>
    </message>
    <message>
        <source>Another draft may lead to another answer, equally likely</source>
        <translation>Ein anderer Entwurf kann zu einer anderen, gleich wahrscheinlichen Antwort führen</translation>
    </message>
</context>
<context>
    <name>DraftPicker</name>
    <message>
        <source>Compare…</source>
        <translation>Vergleichen …</translation>
    </message>
    <message>
        <source>Find out which draft is fastest here</source>
        <translation>Herausfinden, welcher Entwurf hier der schnellste ist</translation>
    </message>
    <message>
        <source>Drafts</source>
        <translation>Entwürfe</translation>
    </message>
    <message>
        <source>The drafts for a target are listed here.</source>
        <translation>Hier stehen die Entwürfe zu einem Zielmodell.</translation>
    </message>
    <message>
        <source>Draft</source>
        <translation>Entwurf</translation>
    </message>
    <message>
        <source>Auto length</source>
        <translation>Länge automatisch</translation>
    </message>
    <message>
        <source>Draft options: {length}</source>
        <translation>Optionen des Entwurfs: {length}</translation>
    </message>
</context>
<context>
    <name>ErrorBar</name>
    <message>
        <source>Details</source>
        <translation>Details</translation>
    </message>
    <message>
        <source>Copy report</source>
        <translation>Bericht kopieren</translation>
    </message>
    <message>
        <source>Versions and the log&apos;s last lines, without chats and tokens</source>
        <translation>Versionen und das Ende des Protokolls, ohne Chats und Zugangstokens</translation>
    </message>
    <message>
        <source>New chat</source>
        <translation>Neuer Chat</translation>
    </message>
    <message>
        <source>Use a shorter context</source>
        <translation>Kürzeren Kontext nutzen</translation>
    </message>
    <message>
        <source>Use no draft</source>
        <translation>Ohne Entwurf</translation>
    </message>
    <message>
        <source>Choose another model</source>
        <translation>Anderes Modell wählen</translation>
    </message>
    <message>
        <source>Open the log</source>
        <translation>Protokoll öffnen</translation>
    </message>
    <message>
        <source>Load it</source>
        <translation>Laden</translation>
    </message>
    <message>
        <source>Answer it</source>
        <translation>Beantworten</translation>
    </message>
    <message>
        <source>Open report</source>
        <translation>Bericht öffnen</translation>
    </message>
    <message>
        <source>Graphics card</source>
        <translation>Grafikkarte</translation>
    </message>
    <message>
        <source>Dismiss</source>
        <translation>Ausblenden</translation>
    </message>
</context>
<context>
    <name>FindBar</name>
    <message>
        <source>Find in this chat</source>
        <translation>In diesem Chat suchen</translation>
    </message>
    <message>
        <source>Previous place</source>
        <translation>Vorige Stelle</translation>
    </message>
    <message>
        <source>Next place</source>
        <translation>Nächste Stelle</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
    <message>
        <source>Not found</source>
        <translation>Nicht gefunden</translation>
    </message>
    <message>
        <source>{place} of {total}</source>
        <translation>{place} von {total}</translation>
    </message>
    <message>
        <source>{place} of {total} or more</source>
        <translation>{place} von {total} oder mehr</translation>
    </message>
</context>
<context>
    <name>FirstRun</name>
    <message>
        <source>Get a model, then ask it something</source>
        <translation>Ein Modell holen, dann etwas fragen</translation>
    </message>
    <message>
        <source>Slipstream runs language models on this computer.</source>
        <translation>Slipstream führt Sprachmodelle auf diesem Computer aus.</translation>
    </message>
    <message>
        <source>What you write never leaves it.</source>
        <translation>Was hier steht, verlässt ihn nie.</translation>
    </message>
    <message>
        <source>{size}, {licence}, runs on any computer</source>
        <translation>{size}, {licence}, läuft auf jedem Computer</translation>
    </message>
    <message>
        <source>A small first model. It answers at once and shows how drafting works, but it gets many facts wrong. You can add a larger one at any time.</source>
        <translation>Ein kleines erstes Modell. Es antwortet sofort und zeigt, wie Entwürfe wirken, irrt sich aber oft. Ein größeres lässt sich jederzeit ergänzen.</translation>
    </message>
    <message>
        <source>Find a model on the Hub</source>
        <translation>Ein Modell auf dem Hub suchen</translation>
    </message>
    <message>
        <source>Sizes are shown before anything is fetched</source>
        <translation>Größen stehen da, bevor etwas geladen wird</translation>
    </message>
    <message>
        <source>Add a folder of models</source>
        <translation>Einen Ordner mit Modellen hinzufügen</translation>
    </message>
    <message>
        <source>Safetensors and GGUF files</source>
        <translation>Safetensors- und GGUF-Dateien</translation>
    </message>
    <message>
        <source>Get the starter model, {size}</source>
        <translation>Das Startmodell holen, {size}</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Download</source>
        <translation>Download</translation>
    </message>
    <message>
        <source>Found, but cannot be loaded:</source>
        <translation>Gefunden, aber nicht ladbar:</translation>
    </message>
    <message>
        <source>and {count} more</source>
        <translation>und {count} weitere</translation>
    </message>
</context>
<context>
    <name>Folders</name>
    <message>
        <source>{folder} is not there, or cannot be read.</source>
        <translation>{folder} ist nicht da oder nicht lesbar.</translation>
    </message>
    <message>
        <source>Models are looked for in {folder} already.</source>
        <translation>In {folder} wird schon nach Modellen gesucht.</translation>
    </message>
    <message>
        <source>{folder} is another program&apos;s; nothing is written there.</source>
        <translation>{folder} gehört einem anderen Programm; dort wird nichts geschrieben.</translation>
    </message>
    <message>
        <source>{whose}: {holds}</source>
        <translation>{whose}: {holds}</translation>
    </message>
    <message>
        <source>{text}. Downloads go here</source>
        <translation>{text}. Downloads kommen hierher</translation>
    </message>
    <message>
        <source>Slipstream&apos;s own</source>
        <translation>Von Slipstream selbst</translation>
    </message>
    <message>
        <source>Added by you</source>
        <translation>Selbst hinzugefügt</translation>
    </message>
    <message>
        <source>Cache of the Hugging Face Hub</source>
        <translation>Cache des Hugging Face Hub</translation>
    </message>
    <message>
        <source>it is not there. If it is on another disk, plug that in</source>
        <translation>nicht da. Liegt er auf einem anderen Laufwerk, dieses anschließen</translation>
    </message>
    <message>
        <source>it cannot be read</source>
        <translation>nicht lesbar</translation>
    </message>
    <message>
        <source>it is one model. Add the folder in which it lies</source>
        <translation>ein einzelnes Modell. Den Ordner darüber hinzufügen</translation>
    </message>
    <message>
        <source>{count} model</source>
        <translation>{count} Modell</translation>
    </message>
    <message>
        <source>{count} models</source>
        <translation>{count} Modelle</translation>
    </message>
    <message>
        <source>looking for models</source>
        <translation>Suche nach Modellen</translation>
    </message>
    <message>
        <source>no model was found</source>
        <translation>kein Modell gefunden</translation>
    </message>
</context>
<context>
    <name>FoldersDialog</name>
    <message>
        <source>Folders</source>
        <translation>Ordner</translation>
    </message>
    <message>
        <source>Add folder…</source>
        <translation>Ordner hinzufügen …</translation>
    </message>
    <message>
        <source>Models are looked for in these folders and in two levels below them.</source>
        <translation>In diesen Ordnern und zwei Ebenen darunter wird nach Modellen gesucht.</translation>
    </message>
    <message>
        <source>Folder with models</source>
        <translation>Ordner mit Modellen</translation>
    </message>
</context>
<context>
    <name>Foot</name>
    <message>
        <source>Models</source>
        <translation>Modelle</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>Einstellungen</translation>
    </message>
    <message>
        <source>Offline</source>
        <translation>Offline</translation>
    </message>
    <message>
        <source>The environment says so: HF_HUB_OFFLINE is set.</source>
        <translation>So bestimmt es die Umgebung: HF_HUB_OFFLINE ist gesetzt.</translation>
    </message>
    <message>
        <source>When this is on, nothing is asked of the network.</source>
        <translation>Eingeschaltet wird im Netz nichts abgefragt.</translation>
    </message>
</context>
<context>
    <name>Footer</name>
    <message>
        <source>Copy the answer</source>
        <translation>Antwort kopieren</translation>
    </message>
    <message>
        <source>Regenerate</source>
        <translation>Neu antworten</translation>
    </message>
    <message>
        <source>More</source>
        <translation>Mehr</translation>
    </message>
</context>
<context>
    <name>Gpu</name>
    <message>
        <source>Starting the download</source>
        <translation>Download beginnt</translation>
    </message>
    <message>
        <source>Checking what is here, {share}</source>
        <translation>Vorhandenes wird geprüft, {share}</translation>
    </message>
    <message>
        <source>Unpacking, {share}</source>
        <translation>Wird entpackt: {share}</translation>
    </message>
    <message>
        <source>Trying it</source>
        <translation>Wird ausprobiert</translation>
    </message>
    <message>
        <source>The graphics card, {card}, is not used. Slipstream can compute on it after a download of {size}.</source>
        <translation>Die Grafikkarte {card} wird nicht genutzt. Nach einem Download von {size} kann Slipstream auf ihr rechnen.</translation>
    </message>
    <message>
        <source>{size} on the disk</source>
        <translation>{size} auf dem Datenträger</translation>
    </message>
    <message>
        <source>{amount} are here; then {disk} on the disk</source>
        <translation>{amount} sind da; danach {disk} auf dem Datenträger</translation>
    </message>
    <message>
        <source>{size} to download, then {disk} on the disk</source>
        <translation>{size} Download, danach {disk} auf dem Datenträger</translation>
    </message>
</context>
<context>
    <name>GpuHint</name>
    <message>
        <source>Enable GPU</source>
        <translation>GPU nutzen</translation>
    </message>
    <message>
        <source>Not now</source>
        <translation>Nicht jetzt</translation>
    </message>
</context>
<context>
    <name>GpuSection</name>
    <message>
        <source>Download</source>
        <translation>Download</translation>
    </message>
    <message>
        <source>Command</source>
        <translation>Befehl</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>Kopieren</translation>
    </message>
    <message>
        <source>Graphics card</source>
        <translation>Grafikkarte</translation>
    </message>
    <message>
        <source>Enable GPU</source>
        <translation>GPU nutzen</translation>
    </message>
    <message>
        <source>Go on</source>
        <translation>Fortsetzen</translation>
    </message>
    <message>
        <source>Try again</source>
        <translation>Noch einmal versuchen</translation>
    </message>
    <message>
        <source>Restart</source>
        <translation>Neu starten</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Use the CPU build again</source>
        <translation>Wieder die CPU nutzen</translation>
    </message>
    <message>
        <source>Remove</source>
        <translation>Entfernen</translation>
    </message>
    <message>
        <source>Look again</source>
        <translation>Noch einmal nachsehen</translation>
    </message>
</context>
<context>
    <name>Header</name>
    <message>
        <source>Draft tint</source>
        <translation>Entwurf tönen</translation>
    </message>
    <message>
        <source>Find in this chat</source>
        <translation>In diesem Chat suchen</translation>
    </message>
    <message>
        <source>More</source>
        <translation>Mehr</translation>
    </message>
    <message>
        <source>Copy as Markdown</source>
        <translation>Als Markdown kopieren</translation>
    </message>
</context>
<context>
    <name>Hub</name>
    <message>
        <source>Look for this very name</source>
        <translation>Genau diesen Namen suchen</translation>
    </message>
    <message>
        <source>The hub has no model for “{text}”.</source>
        <translation>Der Hub hat kein Modell zu „{text}“.</translation>
    </message>
    <message>
        <source>Goes into {folder}</source>
        <translation>Kommt nach {folder}</translation>
    </message>
    <message>
        <source>Offline</source>
        <translation>Offline</translation>
    </message>
    <message>
        <source>Searching for “{text}”</source>
        <translation>„{text}“ wird gesucht</translation>
    </message>
    <message>
        <source>Type a model&apos;s name, such as “qwen2.5 coder”, or a repository as “owner/model”. Nothing is asked of the network before.</source>
        <translation>Den Namen eines Modells eingeben, etwa „qwen2.5 coder“, oder ein Repository als „eigentümer/modell“. Vorher wird im Netz nichts abgefragt.</translation>
    </message>
</context>
<context>
    <name>HubDialog</name>
    <message>
        <source>Get models</source>
        <translation>Modelle holen</translation>
    </message>
    <message>
        <source>Access token</source>
        <translation>Zugangstoken</translation>
    </message>
    <message>
        <source>Offline</source>
        <translation>Offline</translation>
    </message>
    <message>
        <source>Search the Hugging Face Hub</source>
        <translation>Den Hugging Face Hub durchsuchen</translation>
    </message>
    <message>
        <source>Search</source>
        <translation>Suchen</translation>
    </message>
    <message>
        <source>Models found</source>
        <translation>Gefundene Modelle</translation>
    </message>
    <message>
        <source>Offline: HF_HUB_OFFLINE is set, so it cannot be switched off in this window.</source>
        <translation>Offline: HF_HUB_OFFLINE ist gesetzt und in diesem Fenster nicht abschaltbar.</translation>
    </message>
    <message>
        <source>Offline: nothing is searched for or fetched until it is switched off.</source>
        <translation>Offline: Bis zum Ausschalten wird nichts gesucht oder geholt.</translation>
    </message>
</context>
<context>
    <name>KindCharts</name>
    <message>
        <source>Times plain, by kind of prompt</source>
        <translation>Vielfaches ohne Entwurf, nach Art der Aufgabe</translation>
    </message>
    <message>
        <source>fastest of its kind</source>
        <translation>schnellster seiner Art</translation>
    </message>
    <message>
        <source>slowest to fastest prompt</source>
        <translation>langsamste bis schnellste Aufgabe</translation>
    </message>
    <message>
        <source>plain</source>
        <translation>ohne</translation>
    </message>
</context>
<context>
    <name>Knob</name>
    <message>
        <source>Reset {name} to the model&apos;s default</source>
        <translation>{name} auf die Vorgabe des Modells zurücksetzen</translation>
    </message>
</context>
<context>
    <name>LearnedSection</name>
    <message>
        <source>What was asked and answered is kept a second time, so that drafts can copy from other chats. It stays on this computer, and goes with its chat.</source>
        <translation>Was gefragt und geantwortet wurde, wird ein zweites Mal aufbewahrt, damit Entwürfe aus anderen Chats abschreiben können. Es bleibt auf diesem Rechner und geht mit seinem Chat.</translation>
    </message>
    <message>
        <source>Forget what was learned</source>
        <translation>Gelerntes vergessen</translation>
    </message>
    <message>
        <source>Learned from chats</source>
        <translation>Aus Chats gelernt</translation>
    </message>
</context>
<context>
    <name>Line</name>
    <message>
        <source>Acceptance of the last rounds</source>
        <translation>Annahme der letzten Runden</translation>
    </message>
    <message>
        <source>{count} round</source>
        <translation>{count} Runde</translation>
    </message>
    <message>
        <source>{count} rounds</source>
        <translation>{count} Runden</translation>
    </message>
    <message>
        <source>{rounds}, at the end {last}</source>
        <translation>{rounds}, am Ende {last}</translation>
    </message>
    <message>
        <source>Last round</source>
        <translation>Letzte Runde</translation>
    </message>
    <message>
        <source>Last {count} rounds</source>
        <translation>Letzte {count} Runden</translation>
    </message>
    <message>
        <source>No rounds</source>
        <translation>Keine Runden</translation>
    </message>
    <message>
        <source>Download</source>
        <translation>Download</translation>
    </message>
    <message>
        <source>Pause</source>
        <translation>Anhalten</translation>
    </message>
    <message>
        <source>Resume</source>
        <translation>Fortsetzen</translation>
    </message>
    <message>
        <source>Retry</source>
        <translation>Noch einmal</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Throw away</source>
        <translation>Verwerfen</translation>
    </message>
    <message>
        <source>Open</source>
        <translation>Öffnen</translation>
    </message>
    <message>
        <source>Remove</source>
        <translation>Entfernen</translation>
    </message>
    <message>
        <source>In the system&apos;s file manager</source>
        <translation>In der Dateiverwaltung des Systems</translation>
    </message>
    <message>
        <source>From this list; nothing is deleted</source>
        <translation>Aus dieser Liste; nichts wird gelöscht</translation>
    </message>
</context>
<context>
    <name>LinePainter</name>
    <message>
        <source>Title of the chat</source>
        <translation>Titel des Chats</translation>
    </message>
</context>
<context>
    <name>MemoryPanel</name>
    <message>
        <source>Context in tokens</source>
        <translation>Kontext in Tokens</translation>
    </message>
    <message>
        <source>Context</source>
        <translation>Kontext</translation>
    </message>
    <message>
        <source>Ways to make it fit</source>
        <translation>Wege, damit es passt</translation>
    </message>
    <message>
        <source>Nothing is changed until you choose.</source>
        <translation>Ohne Auswahl ändert sich nichts.</translation>
    </message>
    <message>
        <source>Load anyway</source>
        <translation>Trotzdem laden</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>Speicher</translation>
    </message>
    <message>
        <source>Load</source>
        <translation>Laden</translation>
    </message>
    <message>
        <source>For {target}</source>
        <translation>Für {target}</translation>
    </message>
    <message>
        <source>For {target} with {draft}</source>
        <translation>Für {target} mit {draft}</translation>
    </message>
    <message>
        <source>Fits up to {tokens}</source>
        <translation>Passt bis {tokens}</translation>
    </message>
    <message>
        <source>Fits at no length</source>
        <translation>Passt in keiner Länge</translation>
    </message>
</context>
<context>
    <name>MessageEditor</name>
    <message>
        <source>Your message</source>
        <translation>Eigene Nachricht</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Save</source>
        <translation>Speichern</translation>
    </message>
    <message>
        <source>Asks this instead. What was there stays as a version.</source>
        <translation>Fragt stattdessen dies. Was da war, bleibt als Fassung.</translation>
    </message>
</context>
<context>
    <name>Models</name>
    <message>
        <source>repeats</source>
        <translation>Wiederholungen</translation>
    </message>
    <message>
        <source>past answers</source>
        <translation>frühere Antworten</translation>
    </message>
    <message>
        <source>the fastest</source>
        <translation>das Schnellste</translation>
    </message>
    <message>
        <source>all chats</source>
        <translation>alle Chats</translation>
    </message>
    <message>
        <source>own head</source>
        <translation>eigener Kopf</translation>
    </message>
    <message>
        <source>Preparing the tokenizer (once per model)</source>
        <translation>Tokenizer wird vorbereitet (einmal je Modell)</translation>
    </message>
    <message>
        <source>Measuring what 8 bits cost (once per model)</source>
        <translation>Messung, was 8 Bit kosten (einmal je Modell)</translation>
    </message>
    <message>
        <source>Checking that drafts change no bit (once per model)</source>
        <translation>Prüfung, dass Entwürfe kein Bit ändern (einmal je Modell)</translation>
    </message>
    <message>
        <source>Loading {name}, {share}</source>
        <translation>{name} wird geladen, {share}</translation>
    </message>
    <message>
        <source>The program ended while {name} was being loaded. It is not loaded unasked this time.</source>
        <translation>Das Programm endete, während {name} geladen wurde. Diesmal wird es nicht ungefragt geladen.</translation>
    </message>
    <message>
        <source>Loading {name}</source>
        <translation>{name} wird geladen</translation>
    </message>
    <message>
        <source>The settings could not be saved: {detail}</source>
        <translation>Die Einstellungen konnten nicht gespeichert werden: {detail}</translation>
    </message>
</context>
<context>
    <name>NoteBar</name>
    <message>
        <source>Undo</source>
        <translation>Rückgängig</translation>
    </message>
</context>
<context>
    <name>Notifier</name>
    <message>
        <source>The answer is complete.</source>
        <translation>Die Antwort ist fertig.</translation>
    </message>
    <message>
        <source>The answer ended early.</source>
        <translation>Die Antwort endete vorzeitig.</translation>
    </message>
</context>
<context>
    <name>OverflowBar</name>
    <message>
        <source>Drop the oldest turns</source>
        <translation>Älteste Nachrichten weglassen</translation>
    </message>
    <message>
        <source>Summarise</source>
        <translation>Zusammenfassen</translation>
    </message>
    <message>
        <source>Stop here</source>
        <translation>Hier aufhören</translation>
    </message>
    <message>
        <source>The model sums up the oldest turns. Esc stops it.</source>
        <translation>Das Modell fasst die ältesten Nachrichten zusammen. Esc bricht ab.</translation>
    </message>
    <message>
        <source>Room is being made.</source>
        <translation>Es wird Platz geschaffen.</translation>
    </message>
    <message>
        <source>The chat would have {needed} tokens; {context} fit.</source>
        <translation>Der Chat hätte {needed} Tokens; {context} passen hinein.</translation>
    </message>
    <message>
        <source>The chat has reached {context} tokens.</source>
        <translation>Der Chat hat {context} Tokens erreicht.</translation>
    </message>
</context>
<context>
    <name>PrecisionPicker</name>
    <message>
        <source>Precision</source>
        <translation>Genauigkeit</translation>
    </message>
    <message>
        <source>Choose the precision</source>
        <translation>Genauigkeit wählen</translation>
    </message>
    <message>
        <source>Precisions</source>
        <translation>Genauigkeiten</translation>
    </message>
    <message>
        <source>Precision: {precision}</source>
        <translation>Genauigkeit: {precision}</translation>
    </message>
</context>
<context>
    <name>PresetChooser</name>
    <message>
        <source>Name of an own preset</source>
        <translation>Name einer eigenen Vorlage</translation>
    </message>
    <message>
        <source>Save</source>
        <translation>Speichern</translation>
    </message>
    <message>
        <source>Rename</source>
        <translation>Umbenennen</translation>
    </message>
    <message>
        <source>Delete</source>
        <translation>Löschen</translation>
    </message>
</context>
<context>
    <name>PromptFlyout</name>
    <message>
        <source>System prompt</source>
        <translation>Systemtext</translation>
    </message>
    <message>
        <source>Presets</source>
        <translation>Vorlagen</translation>
    </message>
    <message>
        <source>System prompt of this chat</source>
        <translation>Systemtext dieses Chats</translation>
    </message>
    <message>
        <source>What the model is told before this chat begins</source>
        <translation>Was dem Modell vor diesem Chat gesagt wird</translation>
    </message>
    <message>
        <source>Belongs to this chat and holds from the next answer on.</source>
        <translation>Gehört zu diesem Chat und gilt ab der nächsten Antwort.</translation>
    </message>
</context>
<context>
    <name>Rail</name>
    <message>
        <source>New chat</source>
        <translation>Neuer Chat</translation>
    </message>
    <message>
        <source>Search chats</source>
        <translation>Chats durchsuchen</translation>
    </message>
    <message>
        <source>Chats</source>
        <translation>Chats</translation>
    </message>
    <message>
        <source>Undo</source>
        <translation>Rückgängig</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>Modelle</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>Einstellungen</translation>
    </message>
    <message>
        <source>{done} Undo</source>
        <translation>{done} Rückgängig</translation>
    </message>
</context>
<context>
    <name>Room</name>
    <message>
        <source>{count} of {most} characters</source>
        <translation>{count} von {most} Zeichen</translation>
    </message>
    <message>
        <source>The text was cut at {most} characters.</source>
        <translation>Der Text wurde nach {most} Zeichen gekürzt.</translation>
    </message>
</context>
<context>
    <name>RoomMaker</name>
    <message>
        <source>Summarise this conversation in at most {count} words, so that it can go on without the messages above. Keep names, numbers, decisions and open questions.</source>
        <translation>Fasse dieses Gespräch in höchstens {count} Wörtern zusammen, sodass es ohne die Nachrichten oben weitergehen kann. Behalte Namen, Zahlen, Entscheidungen und offene Fragen.</translation>
    </message>
    <message>
        <source>What was said before, in short:</source>
        <translation>Was vorher gesagt wurde, in Kürze:</translation>
    </message>
</context>
<context>
    <name>SamplingFlyout</name>
    <message>
        <source>Sampling</source>
        <translation>Sampling</translation>
    </message>
    <message>
        <source>Presets</source>
        <translation>Vorlagen</translation>
    </message>
    <message>
        <source>Same again</source>
        <translation>Noch einmal gleich</translation>
    </message>
    <message>
        <source>Answer with the seed of the last answer</source>
        <translation>Mit dem Startwert der letzten Antwort antworten</translation>
    </message>
    <message>
        <source>Stop strings, one a line</source>
        <translation>Stopptexte, einer je Zeile</translation>
    </message>
    <message>
        <source>Temperature 0 always takes the likeliest token; top-k, top-p, min-p and the seed change nothing.</source>
        <translation>Temperatur 0 nimmt immer das wahrscheinlichste Token; Top-k, Top-p, Min-p und Startwert ändern nichts.</translation>
    </message>
    <message>
        <source>Empty fields follow the model&apos;s files. This belongs to this chat.</source>
        <translation>Leere Felder folgen den Dateien des Modells. Gilt für diesen Chat.</translation>
    </message>
</context>
<context>
    <name>SamplingPanel</name>
    <message>
        <source>Sampling</source>
        <translation>Sampling</translation>
    </message>
</context>
<context>
    <name>Search</name>
    <message>
        <source>Search chats</source>
        <translation>Chats durchsuchen</translation>
    </message>
    <message>
        <source>Clear the search</source>
        <translation>Suche leeren</translation>
    </message>
</context>
<context>
    <name>SendButton</name>
    <message>
        <source>Stop</source>
        <translation>Stopp</translation>
    </message>
    <message>
        <source>Send</source>
        <translation>Senden</translation>
    </message>
</context>
<context>
    <name>SettingsDialog</name>
    <message>
        <source>Settings</source>
        <translation>Einstellungen</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
    <message>
        <source>About Slipstream</source>
        <translation>Über Slipstream</translation>
    </message>
</context>
<context>
    <name>ShortcutSheet</name>
    <message>
        <source>Keyboard shortcuts</source>
        <translation>Tastenkürzel</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
</context>
<context>
    <name>Sidebar</name>
    <message>
        <source>Hide the sidebar</source>
        <translation>Seitenleiste ausblenden</translation>
    </message>
    <message>
        <source>Target</source>
        <translation>Zielmodell</translation>
    </message>
</context>
<context>
    <name>Starter</name>
    <message>
        <source>Starting the download</source>
        <translation>Der Download beginnt</translation>
    </message>
</context>
<context>
    <name>Stats</name>
    <message>
        <source>nothing drafted</source>
        <translation>nichts entworfen</translation>
    </message>
    <message>
        <source>{accepted} of {drafted} accepted</source>
        <translation>{accepted} von {drafted} angenommen</translation>
    </message>
    <message>
        <source>Last answer</source>
        <translation>Letzte Antwort</translation>
    </message>
    <message>
        <source>No answer yet</source>
        <translation>Noch keine Antwort</translation>
    </message>
    <message>
        <source>Not drafting</source>
        <translation>Kein Entwurf</translation>
    </message>
    <message>
        <source>Drafting</source>
        <translation>Entwurf</translation>
    </message>
    <message>
        <source>Drafting {count}</source>
        <translation>Entwirft {count}</translation>
    </message>
    <message>
        <source>No draft: every token is a step of the target.</source>
        <translation>Kein Entwurf: Jedes Token ist ein Schritt des Zielmodells.</translation>
    </message>
    <message>
        <source>The numbers come with the next answer.</source>
        <translation>Die Zahlen kommen mit der nächsten Antwort.</translation>
    </message>
    <message>
        <source>Paused: nothing repeats.</source>
        <translation>Pausiert: Nichts wiederholt sich.</translation>
    </message>
    <message>
        <source>Nothing was drafted in this answer.</source>
        <translation>In dieser Antwort wurde nichts entworfen.</translation>
    </message>
    <message>
        <source>{few} to {most}</source>
        <translation>{few} bis {most}</translation>
    </message>
    <message>
        <source>{span} drafted at a time; {each} a round.</source>
        <translation>{span} auf einmal entworfen; {each} je Runde.</translation>
    </message>
</context>
<context>
    <name>Summary</name>
    <message>
        <source>with</source>
        <translation>mit</translation>
    </message>
    <message>
        <source>accepted</source>
        <translation>angenommen</translation>
    </message>
    <message>
        <source>No model is loaded</source>
        <translation>Kein Modell ist geladen</translation>
    </message>
    <message>
        <source>Target and draft: {target}, {draft}</source>
        <translation>Zielmodell und Entwurf: {target}, {draft}</translation>
    </message>
</context>
<context>
    <name>SystemPrompt</name>
    <message>
        <source>System prompt</source>
        <translation>Systemtext</translation>
    </message>
</context>
<context>
    <name>TargetPicker</name>
    <message>
        <source>Loading</source>
        <translation>Wird geladen</translation>
    </message>
    <message>
        <source>Choose the target</source>
        <translation>Zielmodell wählen</translation>
    </message>
    <message>
        <source>Targets</source>
        <translation>Zielmodelle</translation>
    </message>
    <message>
        <source>Get models</source>
        <translation>Modelle holen</translation>
    </message>
    <message>
        <source>Folders</source>
        <translation>Ordner</translation>
    </message>
    <message>
        <source>Device</source>
        <translation>Gerät</translation>
    </message>
    <message>
        <source>No model is loaded</source>
        <translation>Kein Modell ist geladen</translation>
    </message>
    <message>
        <source>Choose one to start</source>
        <translation>Zum Start eines wählen</translation>
    </message>
    <message>
        <source>Target: {name}</source>
        <translation>Zielmodell: {name}</translation>
    </message>
    <message>
        <source>none</source>
        <translation>keiner</translation>
    </message>
    <message>
        <source>Processor</source>
        <translation>Prozessor</translation>
    </message>
    <message>
        <source>{count} graphics cards</source>
        <translation>{count} Grafikkarten</translation>
    </message>
</context>
<context>
    <name>Thought</name>
    <message>
        <source>Thinking</source>
        <translation>Denkt nach</translation>
    </message>
    <message>
        <source>Thought for {time}</source>
        <translation>{time} nachgedacht</translation>
    </message>
    <message>
        <source>Stopped while thinking</source>
        <translation>Beim Nachdenken gestoppt</translation>
    </message>
</context>
<context>
    <name>Title</name>
    <message>
        <source>Title of the chat</source>
        <translation>Titel des Chats</translation>
    </message>
</context>
<context>
    <name>TokenPanel</name>
    <message>
        <source>Access token of the hub</source>
        <translation>Zugangstoken des Hubs</translation>
    </message>
    <message>
        <source>Use</source>
        <translation>Nutzen</translation>
    </message>
    <message>
        <source>Remove</source>
        <translation>Entfernen</translation>
    </message>
    <message>
        <source>Access token</source>
        <translation>Zugangstoken</translation>
    </message>
    <message>
        <source>None is set. One is made on the hub&apos;s page, under Settings, Access tokens; reading is all it needs to allow.</source>
        <translation>Keines gesetzt. Eines entsteht auf der Seite des Hubs unter Settings, Access Tokens; es muss nur lesen dürfen.</translation>
    </message>
    <message>
        <source>The one in HF_TOKEN is used.</source>
        <translation>Das in HF_TOKEN wird genutzt.</translation>
    </message>
    <message>
        <source>One is kept in the system&apos;s keyring.</source>
        <translation>Eines liegt im Schlüsselbund des Systems.</translation>
    </message>
    <message>
        <source>One is set. This system has no keyring, so it is forgotten when the program ends.</source>
        <translation>Eines ist gesetzt. Dieses System hat keinen Schlüsselbund; am Programmende ist es vergessen.</translation>
    </message>
    <message>
        <source>The one that the hub&apos;s own tools keep is used.</source>
        <translation>Das der Werkzeuge des Hubs wird genutzt.</translation>
    </message>
</context>
<context>
    <name>Transcript</name>
    <message>
        <source>Conversation</source>
        <translation>Gespräch</translation>
    </message>
    <message>
        <source>Jump to the end</source>
        <translation>Zum Ende springen</translation>
    </message>
    <message>
        <source>The answer is complete.</source>
        <translation>Die Antwort ist fertig.</translation>
    </message>
    <message>
        <source>The answer ended early.</source>
        <translation>Die Antwort endete vorzeitig.</translation>
    </message>
</context>
<context>
    <name>UnforeseenDialog</name>
    <message>
        <source>Error</source>
        <translation>Fehler</translation>
    </message>
    <message>
        <source>Copy report</source>
        <translation>Bericht kopieren</translation>
    </message>
    <message>
        <source>Versions and the log&apos;s last lines, without chats and tokens</source>
        <translation>Versionen und das Ende des Protokolls, ohne Chats und Zugangstokens</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
    <message>
        <source>The program met an error it does not know</source>
        <translation>Das Programm stieß auf einen Fehler, den es nicht kennt</translation>
    </message>
    <message>
        <source>It goes on where it can, and your chats are kept.</source>
        <translation>Es läuft weiter, wo es kann, und die Chats sind gesichert.</translation>
    </message>
    <message>
        <source>Since then {count} more</source>
        <translation>Seitdem noch {count}</translation>
    </message>
</context>
<context>
    <name>Versions</name>
    <message>
        <source>Earlier version</source>
        <translation>Frühere Fassung</translation>
    </message>
    <message>
        <source>Later version</source>
        <translation>Spätere Fassung</translation>
    </message>
    <message>
        <source>{number} / {count}</source>
        <translation>{number} / {count}</translation>
    </message>
    <message>
        <source>Version {number} of {count}</source>
        <translation>Fassung {number} von {count}</translation>
    </message>
</context>
<context>
    <name>WhenFullButton</name>
    <message>
        <source>When full:</source>
        <translation>Wenn voll:</translation>
    </message>
    <message>
        <source>When the context is full</source>
        <translation>Wenn der Kontext voll ist</translation>
    </message>
    <message>
        <source>When full: {way}</source>
        <translation>Wenn voll: {way}</translation>
    </message>
</context>
<context>
    <name>Writing</name>
    <message>
        <source>{names} did not fit: at most {count} files with {most} together can be attached.</source>
        <translation>{names} passte nicht mehr: Höchstens {count} Dateien mit zusammen {most} lassen sich anhängen.</translation>
    </message>
    <message>
        <source>{count} more.</source>
        <translation>{count} weitere.</translation>
    </message>
</context>
<context>
    <name>_LeftOut</name>
    <message>
        <source>The model is shown a summary of the oldest message</source>
        <translation>Das Modell sieht eine Zusammenfassung der ältesten Nachricht</translation>
    </message>
    <message>
        <source>The model is shown a summary of the oldest {count} messages</source>
        <translation>Das Modell sieht eine Zusammenfassung der ältesten {count} Nachrichten</translation>
    </message>
    <message>
        <source>The oldest message is not shown to the model</source>
        <translation>Das Modell sieht die älteste Nachricht nicht</translation>
    </message>
    <message>
        <source>The oldest {count} messages are not shown to the model</source>
        <translation>Das Modell sieht die ältesten {count} Nachrichten nicht</translation>
    </message>
</context>
<context>
    <name>_Lines</name>
    <message>
        <source>Open</source>
        <translation>Öffnen</translation>
    </message>
    <message>
        <source>Pinned</source>
        <translation>Angeheftet</translation>
    </message>
</context>
<context>
    <name>_Remove</name>
    <message>
        <source>Remove</source>
        <translation>Entfernen</translation>
    </message>
</context>
<context>
    <name>_Row</name>
    <message>
        <source>Use</source>
        <translation>Nutzen</translation>
    </message>
    <message>
        <source>Use: {way}</source>
        <translation>Nutzen: {way}</translation>
    </message>
</context>
<context>
    <name>_Rows</name>
    <message>
        <source>Chosen</source>
        <translation>Gewählt</translation>
    </message>
</context>
<context>
    <name>actions</name>
    <message>
        <source>New chat</source>
        <translation>Neuer Chat</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>Stopp</translation>
    </message>
    <message>
        <source>Show or hide the sidebar</source>
        <translation>Seitenleiste ein- oder ausblenden</translation>
    </message>
    <message>
        <source>Get models</source>
        <translation>Modelle holen</translation>
    </message>
    <message>
        <source>Chats</source>
        <translation>Chats</translation>
    </message>
    <message>
        <source>Answer</source>
        <translation>Antwort</translation>
    </message>
    <message>
        <source>Window</source>
        <translation>Fenster</translation>
    </message>
    <message>
        <source>Search chats</source>
        <translation>Chats durchsuchen</translation>
    </message>
    <message>
        <source>Find in this chat</source>
        <translation>In diesem Chat suchen</translation>
    </message>
    <message>
        <source>In the list of chats</source>
        <translation>In der Chatliste</translation>
    </message>
    <message>
        <source>Reading</source>
        <translation>Lesen</translation>
    </message>
    <message>
        <source>Editing</source>
        <translation>Bearbeiten</translation>
    </message>
    <message>
        <source>Sampling</source>
        <translation>Sampling</translation>
    </message>
    <message>
        <source>Rename this chat</source>
        <translation>Diesen Chat umbenennen</translation>
    </message>
    <message>
        <source>Go through the list</source>
        <translation>Durch die Liste gehen</translation>
    </message>
    <message>
        <source>Open the chat</source>
        <translation>Den Chat öffnen</translation>
    </message>
    <message>
        <source>Rename the chat</source>
        <translation>Den Chat umbenennen</translation>
    </message>
    <message>
        <source>Delete the chat</source>
        <translation>Den Chat löschen</translation>
    </message>
    <message>
        <source>Have a deleted chat back</source>
        <translation>Einen gelöschten Chat zurückholen</translation>
    </message>
    <message>
        <source>Next place</source>
        <translation>Nächste Stelle</translation>
    </message>
    <message>
        <source>Previous place</source>
        <translation>Vorige Stelle</translation>
    </message>
    <message>
        <source>Close the search</source>
        <translation>Die Suche schließen</translation>
    </message>
    <message>
        <source>Scroll</source>
        <translation>Rollen</translation>
    </message>
    <message>
        <source>Scroll by a page</source>
        <translation>Um eine Seite rollen</translation>
    </message>
    <message>
        <source>To the beginning or the end</source>
        <translation>Zum Anfang oder Ende</translation>
    </message>
    <message>
        <source>Paste as text, not as an attachment</source>
        <translation>Als Text einfügen, nicht als Anhang</translation>
    </message>
    <message>
        <source>Save a message</source>
        <translation>Eine Nachricht speichern</translation>
    </message>
    <message>
        <source>Save a title</source>
        <translation>Einen Titel speichern</translation>
    </message>
    <message>
        <source>Leave it as it was</source>
        <translation>Lassen, wie es war</translation>
    </message>
    <message>
        <source>Answer anew</source>
        <translation>Neu antworten</translation>
    </message>
    <message>
        <source>Copy the last answer</source>
        <translation>Letzte Antwort kopieren</translation>
    </message>
    <message>
        <source>A number one step up or down</source>
        <translation>Eine Zahl einen Schritt hinauf oder hinunter</translation>
    </message>
    <message>
        <source>Ten steps up or down</source>
        <translation>Zehn Schritte hinauf oder hinunter</translation>
    </message>
    <message>
        <source>Choose a model</source>
        <translation>Ein Modell wählen</translation>
    </message>
    <message>
        <source>Compare drafts</source>
        <translation>Entwürfe vergleichen</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>Einstellungen</translation>
    </message>
    <message>
        <source>Keyboard shortcuts</source>
        <translation>Tastenkürzel</translation>
    </message>
    <message>
        <source>Quit</source>
        <translation>Beenden</translation>
    </message>
    <message>
        <source>Writing</source>
        <translation>Schreiben</translation>
    </message>
    <message>
        <source>Send</source>
        <translation>Senden</translation>
    </message>
    <message>
        <source>New line</source>
        <translation>Neue Zeile</translation>
    </message>
    <message>
        <source>Last question again, where nothing is written</source>
        <translation>Letzte Frage noch einmal, wenn nichts geschrieben ist</translation>
    </message>
</context>
<context>
    <name>answer</name>
    <message>
        <source>More for this answer</source>
        <translation>Mehr zu dieser Antwort</translation>
    </message>
    <message>
        <source>Copy as Markdown</source>
        <translation>Als Markdown kopieren</translation>
    </message>
    <message>
        <source>Copy as rich text</source>
        <translation>Mit Formatierung kopieren</translation>
    </message>
    <message>
        <source>Regenerate</source>
        <translation>Neu antworten</translation>
    </message>
    <message>
        <source>Same again</source>
        <translation>Noch einmal gleich</translation>
    </message>
    <message>
        <source>With the same seed, {seed}</source>
        <translation>Mit demselben Startwert, {seed}</translation>
    </message>
    <message>
        <source>Continue</source>
        <translation>Fortsetzen</translation>
    </message>
    <message>
        <source>Edit the question</source>
        <translation>Frage bearbeiten</translation>
    </message>
</context>
<context>
    <name>card</name>
    <message>
        <source>%n invisible characters are copied too</source>
        <translation>Unsichtbare Zeichen, die mitkopiert werden: %n</translation>
    </message>
</context>
<context>
    <name>chats</name>
    <message>
        <source>Pinned</source>
        <translation>Angeheftet</translation>
    </message>
    <message>
        <source>Today</source>
        <translation>Heute</translation>
    </message>
    <message>
        <source>Yesterday</source>
        <translation>Gestern</translation>
    </message>
    <message>
        <source>Last 7 days</source>
        <translation>Letzte 7 Tage</translation>
    </message>
    <message>
        <source>{month} {year}</source>
        <translation>{month} {year}</translation>
    </message>
    <message>
        <source>Rename</source>
        <translation>Umbenennen</translation>
    </message>
    <message>
        <source>Unpin</source>
        <translation>Lösen</translation>
    </message>
    <message>
        <source>Pin</source>
        <translation>Anheften</translation>
    </message>
    <message>
        <source>Export as Markdown…</source>
        <translation>Als Markdown exportieren …</translation>
    </message>
    <message>
        <source>Export as JSON…</source>
        <translation>Als JSON exportieren …</translation>
    </message>
    <message>
        <source>Delete</source>
        <translation>Löschen</translation>
    </message>
    <message>
        <source>Import chats…</source>
        <translation>Chats importieren …</translation>
    </message>
    <message>
        <source>Export all as Markdown…</source>
        <translation>Alle als Markdown exportieren …</translation>
    </message>
    <message>
        <source>Export all as JSON…</source>
        <translation>Alle als JSON exportieren …</translation>
    </message>
    <message>
        <source>Markdown (*.md)</source>
        <translation>Markdown (*.md)</translation>
    </message>
    <message>
        <source>JSON (*.json)</source>
        <translation>JSON (*.json)</translation>
    </message>
    <message>
        <source>Export</source>
        <translation>Exportieren</translation>
    </message>
    <message>
        <source>Chats (*.json *.md)</source>
        <translation>Chats (*.json *.md)</translation>
    </message>
    <message>
        <source>Import chats</source>
        <translation>Chats importieren</translation>
    </message>
</context>
<context>
    <name>choices</name>
    <message>
        <source>Get</source>
        <translation>Holen</translation>
    </message>
    <message>
        <source>Resume</source>
        <translation>Fortsetzen</translation>
    </message>
    <message>
        <source>Repair</source>
        <translation>Reparieren</translation>
    </message>
</context>
<context>
    <name>compare_table</name>
    <message>
        <source>Fastest</source>
        <translation>Schnellster</translation>
    </message>
</context>
<context>
    <name>compare_words</name>
    <message>
        <source>tok/s</source>
        <translation>tok/s</translation>
    </message>
    <message>
        <source>Times plain</source>
        <translation>Vielfaches</translation>
    </message>
    <message>
        <source>Range</source>
        <translation>Spanne</translation>
    </message>
    <message>
        <source>Accepted</source>
        <translation>Angenommen</translation>
    </message>
    <message>
        <source>Tokens a round</source>
        <translation>Tokens je Runde</translation>
    </message>
    <message>
        <source>First token</source>
        <translation>Erstes Token</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>Speicher</translation>
    </message>
    <message>
        <source>Same text</source>
        <translation>Gleicher Text</translation>
    </message>
    <message>
        <source>No model runs.</source>
        <translation>Kein Modell läuft.</translation>
    </message>
    <message>
        <source>Code</source>
        <translation>Code</translation>
    </message>
    <message>
        <source>Edit</source>
        <translation>Bearbeiten</translation>
    </message>
    <message>
        <source>Summarise</source>
        <translation>Zusammenfassen</translation>
    </message>
    <message>
        <source>Question</source>
        <translation>Frage</translation>
    </message>
    <message>
        <source>Creative</source>
        <translation>Kreativ</translation>
    </message>
    <message>
        <source>Built-in set</source>
        <translation>Mitgeliefert</translation>
    </message>
    <message>
        <source>My last questions</source>
        <translation>Meine letzten Fragen</translation>
    </message>
    <message>
        <source>{taken} of {count} prompts</source>
        <translation>{taken} von {count} Aufgaben</translation>
    </message>
    <message>
        <source>placeholders left out: {count}</source>
        <translation>ausgelassene Platzhalter: {count}</translation>
    </message>
    <message>
        <source>{count} prompt</source>
        <translation>{count} Aufgabe</translation>
    </message>
    <message>
        <source>{count} prompts</source>
        <translation>{count} Aufgaben</translation>
    </message>
    <message>
        <source>Measuring {name}</source>
        <translation>{name} wird gemessen</translation>
    </message>
    <message>
        <source>Measuring without a draft</source>
        <translation>Ohne Entwurf wird gemessen</translation>
    </message>
    <message>
        <source>{left} left</source>
        <translation>noch {left}</translation>
    </message>
    <message>
        <source>Which draft is fastest here?</source>
        <translation>Welcher Entwurf ist hier der schnellste?</translation>
    </message>
    <message>
        <source>Plain decoding could not be measured.</source>
        <translation>Ohne Entwurf ließ sich nicht messen.</translation>
    </message>
    <message>
        <source>Nothing was measured to the end.</source>
        <translation>Nichts wurde zu Ende gemessen.</translation>
    </message>
    <message>
        <source>No draft is faster here than none.</source>
        <translation>Kein Entwurf ist hier schneller als keiner.</translation>
    </message>
    <message>
        <source>{name} is fastest here: {times} times plain.</source>
        <translation>{name} ist hier am schnellsten: {times}-mal so schnell wie ohne Entwurf.</translation>
    </message>
    <message>
        <source>For “{kind}”, {name} was faster still.</source>
        <translation>Bei „{kind}“ war {name} noch schneller.</translation>
    </message>
    <message>
        <source>The target stays loaded, with one draft at a time beside it. The chat goes on when this is over, with the draft that it had.</source>
        <translation>Das Zielmodell bleibt geladen, und neben ihm immer nur ein Entwurf. Danach geht der Chat weiter, mit dem Entwurf, den er hatte.</translation>
    </message>
    <message>
        <source>Every prompt is answered without a draft and with each that is ticked, one of them loaded at a time beside the target. The draft chosen now is loaded again at the end.</source>
        <translation>Jede Aufgabe wird ohne Entwurf und mit jedem angekreuzten beantwortet; neben dem Zielmodell ist immer nur einer davon geladen. Am Ende wird der jetzt gewählte Entwurf wieder geladen.</translation>
    </message>
    <message>
        <source>This takes up to {time}.</source>
        <translation>Das dauert bis zu {time}.</translation>
    </message>
    <message>
        <source>Finished in {time}.</source>
        <translation>Fertig nach {time}.</translation>
    </message>
    <message>
        <source>Stopped after {time}.</source>
        <translation>Abgebrochen nach {time}.</translation>
    </message>
    <message>
        <source>Medians of {count} run, drafts taken in turn, temperature 0.</source>
        <translation>Median von {count} Durchgang, Entwürfe im Wechsel, Temperatur 0.</translation>
    </message>
    <message>
        <source>Medians of {count} runs, drafts taken in turn, temperature 0.</source>
        <translation>Mediane von {count} Durchgängen, Entwürfe im Wechsel, Temperatur 0.</translation>
    </message>
    <message>
        <source>Range: slowest to fastest prompt.</source>
        <translation>Spanne: langsamste bis schnellste Aufgabe.</translation>
    </message>
    <message>
        <source>{count} prompt is longer than the context.</source>
        <translation>{count} Aufgabe ist länger als der Kontext.</translation>
    </message>
    <message>
        <source>{count} prompts are longer than the context.</source>
        <translation>{count} Aufgaben sind länger als der Kontext.</translation>
    </message>
    <message>
        <source>Running</source>
        <translation>Läuft</translation>
    </message>
    <message>
        <source>{low} to {high}</source>
        <translation>{low} bis {high}</translation>
    </message>
    <message>
        <source>{count} of {all}</source>
        <translation>{count} von {all}</translation>
    </message>
    <message>
        <source>All prompts</source>
        <translation>Alle Aufgaben</translation>
    </message>
    <message>
        <source>{times} slower</source>
        <translation>{times} langsamer</translation>
    </message>
</context>
<context>
    <name>context_meter</name>
    <message>
        <source>ask me</source>
        <translation>fragen</translation>
    </message>
    <message>
        <source>Ask me</source>
        <translation>Fragen</translation>
    </message>
    <message>
        <source>Nothing is left out before you have chosen.</source>
        <translation>Ohne Auswahl wird nichts weggelassen.</translation>
    </message>
    <message>
        <source>drop the oldest turns</source>
        <translation>älteste Nachrichten weglassen</translation>
    </message>
    <message>
        <source>Drop the oldest turns</source>
        <translation>Älteste Nachrichten weglassen</translation>
    </message>
    <message>
        <source>The model no longer sees them; they stay in the chat.</source>
        <translation>Das Modell sieht sie nicht mehr; im Chat bleiben sie.</translation>
    </message>
    <message>
        <source>summarise</source>
        <translation>zusammenfassen</translation>
    </message>
    <message>
        <source>Summarise</source>
        <translation>Zusammenfassen</translation>
    </message>
    <message>
        <source>The model sums up the oldest turns and sees that in their place.</source>
        <translation>Das Modell fasst die ältesten Nachrichten zusammen und sieht das statt ihrer.</translation>
    </message>
    <message>
        <source>stop</source>
        <translation>aufhören</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>Aufhören</translation>
    </message>
    <message>
        <source>No answer is written beyond the context.</source>
        <translation>Über den Kontext hinaus wird keine Antwort geschrieben.</translation>
    </message>
</context>
<context>
    <name>draft_picker</name>
    <message>
        <source>Draft options</source>
        <translation>Optionen des Entwurfs</translation>
    </message>
</context>
<context>
    <name>fit</name>
    <message>
        <source>Target weights</source>
        <translation>Gewichte des Zielmodells</translation>
    </message>
    <message>
        <source>Target cache</source>
        <translation>Cache des Zielmodells</translation>
    </message>
    <message>
        <source>Draft weights</source>
        <translation>Gewichte des Entwurfs</translation>
    </message>
    <message>
        <source>Draft cache</source>
        <translation>Cache des Entwurfs</translation>
    </message>
    <message>
        <source>Work space</source>
        <translation>Arbeitsbereich</translation>
    </message>
    <message>
        <source>Other programs</source>
        <translation>Andere Programme</translation>
    </message>
    <message>
        <source>Too much</source>
        <translation>Zu viel</translation>
    </message>
    <message>
        <source>{used} of {total}</source>
        <translation>{used} von {total}</translation>
    </message>
</context>
<context>
    <name>footer</name>
    <message>
        <source>{count} tokens read, {cached} of them kept from before</source>
        <translation>{count} Tokens gelesen, {cached} davon von vorher</translation>
    </message>
    <message>
        <source>{rate} tok/s</source>
        <translation>{rate} tok/s</translation>
    </message>
    <message>
        <source>first token {time} s</source>
        <translation>erstes nach {time} s</translation>
    </message>
    <message>
        <source>no draft</source>
        <translation>kein Entwurf</translation>
    </message>
    <message>
        <source>nothing drafted</source>
        <translation>nichts entworfen</translation>
    </message>
    <message>
        <source>{accepted} of {drafted} drafted tokens accepted</source>
        <translation>{accepted} von {drafted} entworfenen Tokens angenommen</translation>
    </message>
    <message>
        <source>{count} round</source>
        <translation>{count} Runde</translation>
    </message>
    <message>
        <source>{count} rounds</source>
        <translation>{count} Runden</translation>
    </message>
    <message>
        <source>{rate} accepted</source>
        <translation>{rate} angenommen</translation>
    </message>
    <message>
        <source>{count} tokens a round</source>
        <translation>{count} je Runde</translation>
    </message>
    <message>
        <source>Compared with the speed without a draft on this machine</source>
        <translation>Verglichen mit dem Tempo ohne Entwurf auf diesem Rechner</translation>
    </message>
    <message>
        <source>{times} times plain</source>
        <translation>{times}-faches Tempo</translation>
    </message>
    <message>
        <source>The answer is empty</source>
        <translation>Die Antwort ist leer</translation>
    </message>
    <message>
        <source>Reading the chat, {amount}</source>
        <translation>Der Chat wird gelesen, {amount}</translation>
    </message>
    <message>
        <source>Reading the chat</source>
        <translation>Der Chat wird gelesen</translation>
    </message>
    <message>
        <source>failed</source>
        <translation>fehlgeschlagen</translation>
    </message>
    <message>
        <source>interrupted</source>
        <translation>unterbrochen</translation>
    </message>
    <message>
        <source>The program ended before the answer did</source>
        <translation>Das Programm endete vor der Antwort</translation>
    </message>
    <message>
        <source>stopped</source>
        <translation>gestoppt</translation>
    </message>
    <message>
        <source>length limit</source>
        <translation>Längengrenze</translation>
    </message>
    <message>
        <source>context full</source>
        <translation>Kontext voll</translation>
    </message>
    <message>
        <source>stopped for memory</source>
        <translation>gestoppt, Speicher voll</translation>
    </message>
</context>
<context>
    <name>hub_words</name>
    <message>
        <source>given on request</source>
        <translation>auf Anfrage</translation>
    </message>
    <message>
        <source>{count} million downloads</source>
        <translation>{count} Millionen Downloads</translation>
    </message>
    <message>
        <source>{count} thousand downloads</source>
        <translation>{count} Tausend Downloads</translation>
    </message>
    <message>
        <source>{count} download</source>
        <translation>{count} Download</translation>
    </message>
    <message>
        <source>{count} downloads</source>
        <translation>{count} Downloads</translation>
    </message>
    <message>
        <source>{count} file</source>
        <translation>{count} Datei</translation>
    </message>
    <message>
        <source>{count} files</source>
        <translation>{count} Dateien</translation>
    </message>
    <message>
        <source>{size} in {files}</source>
        <translation>{size} in {files}</translation>
    </message>
    <message>
        <source>All of it is here already; getting it checks every file.</source>
        <translation>Alles ist schon da; beim Holen wird jede Datei geprüft.</translation>
    </message>
    <message>
        <source>Fits: {free} are free on the disk</source>
        <translation>Passt: {free} sind auf dem Laufwerk frei</translation>
    </message>
    <message>
        <source>Does not fit: {needed} are needed, {free} are free on the disk</source>
        <translation>Passt nicht: {needed} werden gebraucht, {free} sind auf dem Laufwerk frei</translation>
    </message>
</context>
<context>
    <name>markdown</name>
    <message>
        <source>[image: {words} {address}]</source>
        <translation>[Bild: {words} {address}]</translation>
    </message>
</context>
<context>
    <name>precisions</name>
    <message>
        <source>auto: {precision}</source>
        <translation>automatisch: {precision}</translation>
    </message>
    <message>
        <source>Automatic</source>
        <translation>Automatisch</translation>
    </message>
    <message>
        <source>The fastest exact one on this device</source>
        <translation>Die schnellste exakte auf diesem Gerät</translation>
    </message>
    <message>
        <source>As the target</source>
        <translation>Wie das Zielmodell</translation>
    </message>
    <message>
        <source>Another draft may lead to another answer; all are as likely as without one.</source>
        <translation>Ein anderer Entwurf kann zu einer anderen Antwort führen; alle sind so wahrscheinlich wie ohne.</translation>
    </message>
    <message>
        <source>Same odds</source>
        <translation>Gleiche Wahrscheinlichkeiten</translation>
    </message>
    <message>
        <source>Checked on this device: with one seed, a draft does not change the answer.</source>
        <translation>Auf diesem Gerät geprüft: Bei gleichem Startwert ändert ein Entwurf die Antwort nicht.</translation>
    </message>
    <message>
        <source>Bit-exact</source>
        <translation>Bitgenau</translation>
    </message>
    <message>
        <source>Where two words are almost equally likely, a draft may change which one is taken, because sums are rounded in another order.</source>
        <translation>Sind zwei Wörter fast gleich wahrscheinlich, kann ein Entwurf die Wahl ändern, weil Summen in anderer Reihenfolge gerundet werden.</translation>
    </message>
    <message>
        <source>Same up to rounding</source>
        <translation>Gleich bis auf Rundung</translation>
    </message>
    <message>
        <source>{precision}: {memory}</source>
        <translation>{precision}: {memory}</translation>
    </message>
    <message>
        <source>memory unknown: the files do not say enough</source>
        <translation>Speicher unbekannt: Die Dateien sagen nicht genug</translation>
    </message>
    <message>
        <source>{weights}, {total} with a full context</source>
        <translation>{weights}, {total} bei vollem Kontext</translation>
    </message>
    <message>
        <source>Weights {weights}; keys and values of {context} tokens {cache}, in {precision}.</source>
        <translation>Gewichte {weights}; Schlüssel und Werte von {context} Tokens {cache}, in {precision}.</translation>
    </message>
</context>
<context>
    <name>presets</name>
    <message>
        <source>No system prompt</source>
        <translation>Kein Systemtext</translation>
    </message>
    <message>
        <source>Code reviewer</source>
        <translation>Code prüfen</translation>
    </message>
    <message>
        <source>Short answers</source>
        <translation>Kurze Antworten</translation>
    </message>
    <message>
        <source>Editor</source>
        <translation>Lektorat</translation>
    </message>
    <message>
        <source>Teacher</source>
        <translation>Lehrkraft</translation>
    </message>
    <message>
        <source>Translator</source>
        <translation>Übersetzen</translation>
    </message>
    <message>
        <source>Precise</source>
        <translation>Genau</translation>
    </message>
    <message>
        <source>Balanced</source>
        <translation>Ausgewogen</translation>
    </message>
    <message>
        <source>Creative</source>
        <translation>Kreativ</translation>
    </message>
    <message>
        <source>There is a preset “{name}” already.</source>
        <translation>Eine Vorlage „{name}“ gibt es schon.</translation>
    </message>
    <message>
        <source>A preset needs a name.</source>
        <translation>Eine Vorlage braucht einen Namen.</translation>
    </message>
    <message>
        <source>The name has {count} characters; {most} is the most.</source>
        <translation>Der Name hat {count} Zeichen; höchstens {most} sind möglich.</translation>
    </message>
    <message>
        <source>“{name}” comes with the program. Another name is needed.</source>
        <translation>„{name}“ gehört zum Programm. Ein anderer Name ist nötig.</translation>
    </message>
    <message>
        <source>Own</source>
        <translation>Eigene</translation>
    </message>
    <message>
        <source>The presets could not be saved: {detail}</source>
        <translation>Die Vorlagen konnten nicht gespeichert werden: {detail}</translation>
    </message>
    <message>
        <source>The presets would take {size}; {most} is the most.</source>
        <translation>Die Vorlagen bräuchten {size}; höchstens {most} sind möglich.</translation>
    </message>
</context>
<context>
    <name>resources</name>
    <message>
        <source>en</source>
        <translation>de</translation>
    </message>
</context>
<context>
    <name>rows</name>
    <message>
        <source>Not a model by itself</source>
        <translation>Für sich kein Modell</translation>
    </message>
    <message>
        <source>Cannot be loaded</source>
        <translation>Nicht ladbar</translation>
    </message>
    <message>
        <source>Drafts to get</source>
        <translation>Entwürfe zum Holen</translation>
    </message>
    <message>
        <source>Cannot draft for this target</source>
        <translation>Können für dieses Zielmodell nicht entwerfen</translation>
    </message>
    <message>
        <source>Whatever is fastest, round by round</source>
        <translation>Runde für Runde, was am schnellsten ist</translation>
    </message>
    <message>
        <source>Auto</source>
        <translation>Automatisch</translation>
    </message>
    <message>
        <source>None</source>
        <translation>Keiner</translation>
    </message>
    <message>
        <source>Repeats from the chat</source>
        <translation>Wiederholungen aus dem Chat</translation>
    </message>
    <message>
        <source>Copies earlier text; needs no memory</source>
        <translation>Kopiert früheren Text; braucht keinen Speicher</translation>
    </message>
    <message>
        <source>Repeats from past answers</source>
        <translation>Wiederholungen aus früheren Antworten</translation>
    </message>
    <message>
        <source>Copies what mostly followed in any chat</source>
        <translation>Schreibt ab, was meist folgte, in jedem Chat</translation>
    </message>
    <message>
        <source>Repeats from all chats</source>
        <translation>Wiederholungen aus allen Chats</translation>
    </message>
    <message>
        <source>Copies long passages of this and other chats</source>
        <translation>Schreibt lange Stellen aus diesem und anderen Chats ab</translation>
    </message>
    <message>
        <source>Own head (MTP)</source>
        <translation>Eigener Kopf (MTP)</translation>
    </message>
    <message>
        <source>Trained with the model, in its own files</source>
        <translation>Mit dem Modell trainiert, in dessen Dateien</translation>
    </message>
    <message>
        <source>Loading</source>
        <translation>Wird geladen</translation>
    </message>
    <message>
        <source>Checking the vocabulary</source>
        <translation>Vokabular wird geprüft</translation>
    </message>
    <message>
        <source>Measured in use over {tokens}, last on {date}</source>
        <translation>Im Gebrauch über {tokens} gemessen, zuletzt am {date}</translation>
    </message>
    <message>
        <source>Measured over {tokens}, last by bench on {date}</source>
        <translation>Über {tokens} gemessen, zuletzt durch bench am {date}</translation>
    </message>
    <message>
        <source>{rate} without a draft</source>
        <translation>{rate} ohne Entwurf</translation>
    </message>
</context>
<context>
    <name>sampling</name>
    <message>
        <source>new each time</source>
        <translation>jedes Mal neu</translation>
    </message>
    <message>
        <source>up to the context&apos;s end</source>
        <translation>bis zum Ende des Kontexts</translation>
    </message>
    <message>
        <source>a whole number</source>
        <translation>eine ganze Zahl</translation>
    </message>
    <message>
        <source>a number</source>
        <translation>eine Zahl</translation>
    </message>
    <message>
        <source>{name} must be {kind}; it is “{text}”.</source>
        <translation>{name} muss {kind} sein; da steht „{text}“.</translation>
    </message>
    <message>
        <source>{name} must lie between {least} and {most}; it is {value}.</source>
        <translation>{name} muss zwischen {least} und {most} liegen; der Wert ist {value}.</translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation>Temperatur</translation>
    </message>
    <message>
        <source>How freely is chosen. 0 always takes the likeliest token.</source>
        <translation>Wie frei gewählt wird. 0 nimmt immer das wahrscheinlichste Token.</translation>
    </message>
    <message>
        <source>Top-k</source>
        <translation>Top-k</translation>
    </message>
    <message>
        <source>Choose among so many likeliest tokens. 0: all.</source>
        <translation>Unter so vielen wahrscheinlichsten Tokens wählen. 0: allen.</translation>
    </message>
    <message>
        <source>Top-p</source>
        <translation>Top-p</translation>
    </message>
    <message>
        <source>Choose among the likeliest tokens that together have this share. 1: all.</source>
        <translation>Unter den wahrscheinlichsten Tokens wählen, die zusammen diesen Anteil haben. 1: allen.</translation>
    </message>
    <message>
        <source>Min-p</source>
        <translation>Min-p</translation>
    </message>
    <message>
        <source>Leave out tokens below this share of the likeliest one&apos;s probability. 0: none.</source>
        <translation>Tokens unter diesem Anteil der Wahrscheinlichkeit des wahrscheinlichsten weglassen. 0: keine.</translation>
    </message>
    <message>
        <source>Repetition penalty</source>
        <translation>Wiederholungsstrafe</translation>
    </message>
    <message>
        <source>Above 1, tokens that stand in the chat already become less likely.</source>
        <translation>Über 1 werden Tokens, die schon im Chat stehen, unwahrscheinlicher.</translation>
    </message>
    <message>
        <source>Presence penalty</source>
        <translation>Präsenzstrafe</translation>
    </message>
    <message>
        <source>Above 0, tokens that the answer has already become less likely, once.</source>
        <translation>Über 0 werden Tokens, die schon in der Antwort stehen, einmalig unwahrscheinlicher.</translation>
    </message>
    <message>
        <source>Frequency penalty</source>
        <translation>Häufigkeitsstrafe</translation>
    </message>
    <message>
        <source>Above 0, tokens become less likely each time the answer has them.</source>
        <translation>Über 0 werden Tokens mit jedem Vorkommen in der Antwort unwahrscheinlicher.</translation>
    </message>
    <message>
        <source>Longest answer</source>
        <translation>Längste Antwort</translation>
    </message>
    <message>
        <source>An answer ends after so many tokens.</source>
        <translation>Nach so vielen Tokens endet eine Antwort.</translation>
    </message>
    <message>
        <source>Seed</source>
        <translation>Startwert</translation>
    </message>
    <message>
        <source>The same seed, chat and settings give the same answer.</source>
        <translation>Gleicher Startwert, Chat und gleiche Einstellungen ergeben die gleiche Antwort.</translation>
    </message>
    <message>
        <source>As the model&apos;s files say</source>
        <translation>Wie in den Dateien des Modells</translation>
    </message>
</context>
<context>
    <name>settings</name>
    <message>
        <source>Look</source>
        <translation>Aussehen</translation>
    </message>
    <message>
        <source>Theme</source>
        <translation>Farbschema</translation>
    </message>
    <message>
        <source>As the system</source>
        <translation>Wie das System</translation>
    </message>
    <message>
        <source>Light</source>
        <translation>Hell</translation>
    </message>
    <message>
        <source>Dark</source>
        <translation>Dunkel</translation>
    </message>
    <message>
        <source>Font size</source>
        <translation>Schriftgröße</translation>
    </message>
    <message>
        <source>Of the system&apos;s font size</source>
        <translation>Im Verhältnis zur Schrift des Systems</translation>
    </message>
    <message>
        <source>%</source>
        <translation>%</translation>
    </message>
    <message>
        <source>Language</source>
        <translation>Sprache</translation>
    </message>
    <message>
        <source>From the next start on</source>
        <translation>Ab dem nächsten Start</translation>
    </message>
    <message>
        <source>English</source>
        <translation>English</translation>
    </message>
    <message>
        <source>Deutsch</source>
        <translation>Deutsch</translation>
    </message>
    <message>
        <source>Sidebar</source>
        <translation>Seitenleiste</translation>
    </message>
    <message>
        <source>Target, draft, memory and acceptance</source>
        <translation>Zielmodell, Entwurf, Speicher und Annahme</translation>
    </message>
    <message>
        <source>Where there is room</source>
        <translation>Wo Platz ist</translation>
    </message>
    <message>
        <source>Shown</source>
        <translation>Eingeblendet</translation>
    </message>
    <message>
        <source>Hidden</source>
        <translation>Ausgeblendet</translation>
    </message>
    <message>
        <source>Chat list</source>
        <translation>Chatliste</translation>
    </message>
    <message>
        <source>Chat</source>
        <translation>Chat</translation>
    </message>
    <message>
        <source>Draft tint</source>
        <translation>Entwurf tönen</translation>
    </message>
    <message>
        <source>Marks what the draft wrote in an answer</source>
        <translation>Hebt hervor, was der Entwurf zur Antwort beitrug</translation>
    </message>
    <message>
        <source>On</source>
        <translation>Ein</translation>
    </message>
    <message>
        <source>Off</source>
        <translation>Aus</translation>
    </message>
    <message>
        <source>Unfold thinking</source>
        <translation>Nachdenken aufklappen</translation>
    </message>
    <message>
        <source>Thoughts before an answer are open at first</source>
        <translation>Gedanken vor einer Antwort sind zuerst aufgeklappt</translation>
    </message>
    <message>
        <source>When the context is full</source>
        <translation>Wenn der Kontext voll ist</translation>
    </message>
    <message>
        <source>What the model no longer sees stays in the chat</source>
        <translation>Was das Modell nicht mehr sieht, bleibt im Chat</translation>
    </message>
    <message>
        <source>Ask</source>
        <translation>Fragen</translation>
    </message>
    <message>
        <source>Drop the oldest turns</source>
        <translation>Älteste Nachrichten weglassen</translation>
    </message>
    <message>
        <source>Summarise</source>
        <translation>Zusammenfassen</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>Aufhören</translation>
    </message>
    <message>
        <source>Notifications</source>
        <translation>Benachrichtigungen</translation>
    </message>
    <message>
        <source>When a long answer ends while another window is used</source>
        <translation>Wenn eine lange Antwort endet, während ein anderes Fenster vorn ist</translation>
    </message>
    <message>
        <source>Drafting</source>
        <translation>Entwurf</translation>
    </message>
    <message>
        <source>Draft length</source>
        <translation>Entwurfslänge</translation>
    </message>
    <message>
        <source>How many are drafted at a time</source>
        <translation>Wie viele auf einmal entworfen werden</translation>
    </message>
    <message>
        <source>tokens</source>
        <translation>Tokens</translation>
    </message>
    <message>
        <source>Automatic</source>
        <translation>Automatisch</translation>
    </message>
    <message>
        <source>Verification</source>
        <translation>Prüfung</translation>
    </message>
    <message>
        <source>Coupled keeps the target&apos;s own text, rejection only its odds</source>
        <translation>Gekoppelt bleibt es der Text des Zielmodells, beim Verwerfen bleiben nur die Wahrscheinlichkeiten</translation>
    </message>
    <message>
        <source>Coupled</source>
        <translation>Gekoppelt</translation>
    </message>
    <message>
        <source>Rejection</source>
        <translation>Verwerfen</translation>
    </message>
    <message>
        <source>Network</source>
        <translation>Netz</translation>
    </message>
    <message>
        <source>Offline</source>
        <translation>Offline</translation>
    </message>
    <message>
        <source>Nothing is searched for or fetched</source>
        <translation>Nichts wird gesucht oder geholt</translation>
    </message>
</context>
<context>
    <name>start</name>
    <message>
        <source>Another start asked for what is neither a model&apos;s file or folder nor a chat.</source>
        <translation>Ein weiterer Start wollte etwas öffnen, das weder Datei oder Ordner eines Modells noch ein Chat ist.</translation>
    </message>
</context>
<context>
    <name>text_files</name>
    <message>
        <source>{count} byte</source>
        <translation>{count} Byte</translation>
    </message>
    <message>
        <source>{count} bytes</source>
        <translation>{count} Bytes</translation>
    </message>
    <message>
        <source>“{name}” is a folder. Only text files can be attached.</source>
        <translation>„{name}“ ist ein Ordner. Nur Textdateien lassen sich anhängen.</translation>
    </message>
    <message>
        <source>“{name}” is not an ordinary file.</source>
        <translation>„{name}“ ist keine gewöhnliche Datei.</translation>
    </message>
    <message>
        <source>“{name}” has {size}; {most} is the most that can be attached.</source>
        <translation>„{name}“ hat {size}; höchstens {most} lassen sich anhängen.</translation>
    </message>
    <message>
        <source>“{name}” has no text in it.</source>
        <translation>„{name}“ enthält keinen Text.</translation>
    </message>
    <message>
        <source>“{name}” is not a text file. Only text can be attached.</source>
        <translation>„{name}“ ist keine Textdatei. Nur Text lässt sich anhängen.</translation>
    </message>
    <message>
        <source>“{name}” may not be read by this user.</source>
        <translation>„{name}“ darf nicht gelesen werden.</translation>
    </message>
    <message>
        <source>“{name}” is no longer there.</source>
        <translation>„{name}“ ist nicht mehr da.</translation>
    </message>
    <message>
        <source>“{name}” could not be read: {detail}</source>
        <translation>„{name}“ ist nicht lesbar: {detail}</translation>
    </message>
</context>
<context>
    <name>tint</name>
    <message>
        <source>Round {number}: drafted {drafted}, accepted {accepted}, {time} ms</source>
        <translation>Runde {number}: {drafted} entworfen, {accepted} angenommen, {time} ms</translation>
    </message>
</context>
<context>
    <name>words</name>
    <message>
        <source>{count} token</source>
        <translation>{count} Token</translation>
    </message>
    <message>
        <source>{count} tokens</source>
        <translation>{count} Tokens</translation>
    </message>
    <message>
        <source>{count} billion parameters</source>
        <translation>{count} Milliarden Parameter</translation>
    </message>
    <message>
        <source>{count} million parameters</source>
        <translation>{count} Millionen Parameter</translation>
    </message>
    <message>
        <source>{count} context</source>
        <translation>{count} Kontext</translation>
    </message>
    <message>
        <source>{amount}, {rate} a second, {left} left</source>
        <translation>{amount}, {rate} pro Sekunde, noch {left}</translation>
    </message>
    <message>
        <source>The hub asks to wait, {left} left</source>
        <translation>Der Hub bittet zu warten, noch {left}</translation>
    </message>
    <message>
        <source>{done} of {total} {unit}</source>
        <translation>{done} von {total} {unit}</translation>
    </message>
</context>
<context>
    <name>writing</name>
    <message>
        <source>about {count} tokens</source>
        <translation>etwa {count} Tokens</translation>
    </message>
</context>
</TS>
