# Der Rahmen.
skip = Zum Inhalt
nav = Hauptmenü
inbox = Eingang
sign-in = Anmelden
sign-out = Abmelden
language = Sprache
api-docs = Dokumentation der API
to-inbox = Zurück zum Eingang

# Anmelden.
sign-in-demo = Dieser Host dient der Entwicklung. Wählen Sie, wer Sie sind:
sign-in-no-group = ohne Gruppe
sign-in-token = Mit einem Zugriffstoken anmelden
sign-in-token-field = Zugriffstoken
sign-in-token-help = Derselbe Token, den Programme an die API senden. Die Sitzung endet spätestens mit dem Token.
sign-in-no-token = Fügen Sie einen Zugriffstoken ein.
sign-in-refused = Der Token wurde nicht angenommen: { $detail }
sign-in-provider = Beim Identitätsanbieter anmelden
sign-in-not-begun = Die Anmeldung dauerte zu lange oder begann in einem anderen Browser. Melden Sie sich erneut an.
sign-in-down = Der Identitätsanbieter ist derzeit nicht erreichbar. Versuchen Sie es bald erneut. Für den Betrieb: { $detail }
sign-in-setting = Der Identitätsanbieter und dieser Host passen nicht zusammen. Für den Betrieb: { $detail }
sign-in-busy = Zu viele Personen melden sich gleichzeitig an. Versuchen Sie es gleich erneut.
sign-in-client = Der Identitätsanbieter akzeptiert diesen Host nicht ({ $code }). Für den Betrieb: prüfen Sie oidc_client_id und oidc_client_secret.
sign-in-provider-refused = Der Identitätsanbieter hat die Anmeldung abgelehnt: { $code }
sign-in-clocks = Die Uhren des Identitätsanbieters und dieses Hosts weichen zu sehr voneinander ab. Für den Betrieb: stellen Sie sie.
sign-in-claim = Der Identitätsanbieter nennt { $claim } nicht in brauchbarer Form. Für den Betrieb: er soll { $claim } in das ID-Token aufnehmen.
sign-in-foreign = Die Antwort des Identitätsanbieters gehört nicht zu dieser Anmeldung: siehe { $claim }. Melden Sie sich erneut an.
sign-in-untrusted = Die Antwort des Identitätsanbieters ist mit keinem seiner Schlüssel signiert. Für den Betrieb: prüfen Sie jwks_url.
sign-in-unknown = Dieser Host kennt Sie noch nicht: { $detail }. Für den Betrieb: fügen Sie den Mandanten hinzu, oder der Anbieter soll einen anderen nennen.
signed-out = Sie sind abgemeldet
signed-out-here = Sie sind bei wrkflw abgemeldet. Beim Identitätsanbieter sind Sie vielleicht noch angemeldet.
signed-out-there = Auch beim Identitätsanbieter abmelden
sign-in-again = Erneut anmelden

# Zeitpunkte.
moment-now = gerade eben
moment-in-minutes = { $count ->
    [one] in { $count } Minute
   *[other] in { $count } Minuten
}
moment-in-hours = { $count ->
    [one] in { $count } Stunde
   *[other] in { $count } Stunden
}
moment-in-days = { $count ->
    [one] in { $count } Tag
   *[other] in { $count } Tagen
}
moment-ago-minutes = { $count ->
    [one] vor { $count } Minute
   *[other] vor { $count } Minuten
}
moment-ago-hours = { $count ->
    [one] vor { $count } Stunde
   *[other] vor { $count } Stunden
}
moment-ago-days = { $count ->
    [one] vor { $count } Tag
   *[other] vor { $count } Tagen
}

# Arbeit.
started-by = begonnen von { $who }
suspended = Angehalten
due = Fällig
since = Seit
with = Bei
offered-to = Angeboten an
held-by-you = Ihre
holder-for = { $owner } für { $other }
priority-number = Priorität { $number }
claim = Übernehmen
claim-of = Übernehmen: { $title }

# Der Eingang.
inbox-views = Ansichten
inbox-view-mine = Meine
inbox-view-available = Zu übernehmen
inbox-view-groups = Meine Gruppen
inbox-view-all = Alle
inbox-count = { $count ->
    [one] { $count } Aufgabe
   *[other] { $count } Aufgaben
}
inbox-count-more = Mehr als { $count } Aufgaben
inbox-filter = Filter
inbox-search = Suchen
inbox-definition = Ablauf
inbox-priority = Priorität ab
inbox-due-before = Fällig vor
inbox-sort = Reihenfolge
inbox-sort-created = Älteste zuerst
inbox-sort-due = Fälligste zuerst
inbox-more = Weitere Filter und Reihenfolge
inbox-apply = Anwenden
inbox-clear = Alle dieser Ansicht zeigen
inbox-see-available = Zeigen, was Sie übernehmen dürfen
inbox-empty-mine = Sie haben keine Aufgabe.
inbox-empty-available = Nichts wartet auf Sie. Neue Arbeit erscheint hier, sobald ein Ablauf sie Ihnen oder einer Ihrer Gruppen anbietet.
inbox-empty-groups = Keine Ihrer Gruppen hat Arbeit zu übernehmen. In welchen Gruppen Sie sind, weiß, wer das Verzeichnis verwaltet.
inbox-empty-all = Es gibt keine offene Aufgabe.
inbox-empty-filtered = Keine Aufgabe dieser Ansicht entspricht dem Filter.
searched-in-part = Bisher ist nichts gefunden, aber noch nicht alles durchsucht.
pages = Seiten
first-page = Erste Seite
next-page = Nächste Seite

# Warum etwas nicht geht.
trouble-missing = Nicht gefunden
trouble-missing-detail = Unter dieser Adresse ist keine Seite. Der Link ist vielleicht alt oder unvollständig.
trouble-forbidden = Das dürfen Sie nicht
trouble-refused = Das geht jetzt nicht
trouble-failed = Hier ist etwas fehlgeschlagen
trouble-request = Für den Betrieb: Anfrage { $id }
trouble-foreign = Das Formular wurde nicht angenommen
trouble-foreign-detail = Es kam von einer anderen Website, oder Sie haben sich seit dem Laden der Seite neu angemeldet. Öffnen Sie die Seite erneut und wiederholen Sie, was Sie getan haben.

# Eine Instanz.
tabs = Teile der Seite
tab-timeline = Verlauf
tab-diagram = Diagramm
tab-data = Daten
tab-events = Ereignisse
tab-audit = Prüfprotokoll
tab-related = Verwandte
related-before = Beginnt neu
related-after = Neu begonnen von
related-parent = Kind von
related-child = Eltern von
related-none = Sie beginnt keine Instanz neu, keine beginnt sie neu, und sie hat weder Eltern noch Kinder.
related-more = Es gibt mehr verwandte Instanzen, als diese Seite sucht.
data-now = Die Daten des Ablaufs jetzt
completed = Abgeschlossen
cancelled = Abgebrochen
stopped-by = { $who }: { $reason }
about-instance = Begonnen von { $who }, { $when }. Ablauf { $flow }.
waits-for = Wartet auf { $who }
waits = Wartet
step-offered = Angeboten an { $who }
step-handled = Bearbeitet von { $who }
step-begun = Begonnen
step-ended = beendet
nobody = Niemand kann diese Arbeit jetzt tun. Der Betrieb muss sie jemandem geben.
needs-decisions = { $count ->
    [one] Braucht { $count } Entscheidung mit demselben Ergebnis.
   *[other] Braucht { $count } Entscheidungen mit demselben Ergebnis.
}
decided = { $who }: { $outcome }
decided-for = { $who } für { $other }: { $outcome }
left-by = { $trigger }, durch { $who }
left = { $trigger }
ended-with = Beendet: { $outcome }
comments = Kommentare
ahead-certain = kommt noch
ahead-possible = kann noch kommen

# Handeln.
why-not = Was Sie jetzt nicht dürfen, und warum
refused-without-reason = Das geht jetzt nicht.
refusal-own_request = Das haben Sie beantragt. Darum bearbeitet es jemand anderes.
refusal-excluded = Sie sind von dieser Arbeit ausgeschlossen.
refusal-already_decided = Sie haben hier bereits entschieden.
refusal-decided_elsewhere = Sie haben in einem anderen Schritt entschieden. Niemand entscheidet in beiden.
refusal-own_work = Das ist Arbeit der Person, die den Vorgang gestartet hat. Niemand übernimmt sie.
refusal-not_a_candidate = Diese Arbeit ist anderen angeboten.
refusal-not_claimed = Niemand hat diese Aufgabe übernommen.
refusal-not_delegated = Diese Aufgabe ist nicht delegiert.
refusal-not_suspended = Das ist nicht angehalten.
refusal-delegations_exhausted = Diese Aufgabe kann nicht weiter delegiert werden.
refusal-instance_running = Das ist noch nicht beendet.
refusal-instance_ended = Das ist beendet.
refusal-not_owner = Das darf nur, wer diese Aufgabe übernommen hat.

# Probleme der API nach ihren Codes. Die ohne Text hier stehen in den Worten der API selbst: Ein Test hat die Liste.
problem-permission_missing = Dafür braucht es die Berechtigung { $reason }.
problem-not_found = Das gibt es nicht, oder nicht für Sie: { $detail }
problem-malformed_json = Das ist kein JSON: { $detail }
problem-malformed_request = Die Anfrage ist nicht lesbar: { $detail }
problem-invalid_cursor = Diese Liste hat sich inzwischen geändert. Beginnen Sie mit ihrer ersten Seite.
problem-cursor_expired = Diese Liste stammt aus einer früheren Datenbank. Beginnen Sie mit ihrer ersten Seite.
problem-token_malformed = Das Token ist nicht lesbar: { $detail }
problem-token_expired = Die Sitzung oder das Token ist abgelaufen. Melden Sie sich neu an.
problem-token_not_yet_valid = Das Token gilt noch nicht.
problem-token_untrusted = Das Token hat niemand unterschrieben, dem dieser Host vertraut.
problem-token_claim_invalid = Das Token sagt etwas, womit dieser Host nichts anfangen kann: { $detail }
problem-token_keys_unavailable = Die Schlüssel, die Token prüfen, sind gerade nicht erreichbar. Versuchen Sie es gleich noch einmal.
problem-unknown_tenant = Dieser Host kennt den Mandanten nicht: { $detail }
problem-task_taken = Jemand war schneller, oder die Arbeit ist beendet.
problem-instance_suspended = Die Instanz ist angehalten.
problem-task_suspended = Die Aufgabe ist angehalten.
problem-already_running = Zu diesem Gegenstand läuft schon eine andere Instanz: { $detail }
problem-too_many_operations = Zu viele Operationen laufen gleichzeitig: { $detail }
problem-no_active_version = Es kann nichts beginnen: { $detail }
problem-version_retired = Eine zurückgezogene Version wird nicht mehr verwendet: { $detail }
problem-version_stopped = Der Betrieb hat die Version angehalten: { $detail }
problem-unknown_names = Die Version verwendet Namen, die es nicht gibt. Legen Sie sie an, oder aktivieren Sie die Version trotzdem.
problem-limit_reached = Eine Grenze ist erreicht: { $detail }
problem-not_first = Ein anderes Ereignis derselben Instanz kommt zuerst: { $detail }
problem-delivery_ended = Sie wurde zugestellt oder schon verworfen.
problem-too_large = Das ist zu groß: { $detail }
problem-invalid_request = Etwas ist nicht, wie es sein muss: { $detail }
problem-invalid_input = Das wird nicht angenommen: { $detail }
problem-nobody_left = Jemand muss die übrige Arbeit tun können: { $detail }
problem-idempotency_key_reused = Dieses Formular wurde schon mit anderem Inhalt abgeschickt. Sehen Sie nach, was das bewirkt hat, bevor Sie es wieder abschicken.
problem-unpublishable = So kann die Version nicht veröffentlicht werden.
problem-logic_budget_exceeded = Die Logik des Ablaufs hat ihr Budget verbraucht. Wer sie geschrieben hat, muss das beheben: { $detail }
problem-logic_fault = Die Logik des Ablaufs ist fehlgeschlagen. Wer sie geschrieben hat, muss das beheben: { $detail }
problem-logic_output_too_large = Die Logik des Ablaufs hat zu viel geantwortet. Wer sie geschrieben hat, muss das beheben: { $detail }
problem-internal = Das hat nicht geklappt, und Sie können nichts daran ändern. Das Protokoll des Hosts sagt mehr zu dieser Anfrage.
problem-busy = Andere ändern gerade dasselbe. Versuchen Sie es gleich noch einmal.
problem-overloaded = Der Host hat gerade zu viel zu tun. Versuchen Sie es gleich noch einmal.
problem-unavailable = Der Host kann das gerade nicht: { $detail }
violation-additionalProperties = Das wird hier nicht erwartet.
violation-anyOf = Das passt zu keiner der Möglichkeiten.
violation-const = Nur das ist erlaubt: { $value }
violation-contains = Ein nötiger Eintrag fehlt.
violation-enum = Das ist nichts davon: { $value }
violation-exclusiveMaximum = Das muss kleiner als { $value } sein.
violation-exclusiveMinimum = Das muss größer als { $value } sein.
violation-falseSchema = Hier darf nichts stehen.
violation-format = Das hat nicht das Format { $value }.
violation-maxItems = Einträge: höchstens { $value }.
violation-maxLength = Zeichen: höchstens { $value }.
violation-maxProperties = Felder: höchstens { $value }.
violation-maximum = Das darf höchstens { $value } sein.
violation-minItems = Einträge: mindestens { $value }.
violation-minLength = Zeichen: mindestens { $value }.
violation-minProperties = Felder: mindestens { $value }.
violation-minimum = Das muss mindestens { $value } sein.
violation-multipleOf = Das muss ein Vielfaches von { $value } sein.
violation-not = Das ist ausgeschlossen.
violation-oneOf = Das passt nicht zu genau einer der Möglichkeiten.
violation-pattern = Das passt nicht zum Muster { $value }
violation-propertyNames = Ein Name ist hier nicht erlaubt.
violation-required = Das ist erforderlich.
violation-schema = Das passt nicht, und es ist zu lang, um zu sagen, wo.
violation-too_costly = Die Prüfung davon dauert zu lange. Kürzen Sie es.
violation-type = Das muss sein: { $value }
violation-unevaluatedItems = Es sind mehr Einträge als erwartet.
violation-unevaluatedProperties = Das wird hier nicht erwartet.
violation-uniqueItems = Zwei Einträge sind gleich.
json-type-array = eine Liste
json-type-boolean = wahr oder falsch
json-type-integer = eine ganze Zahl (wie 1500)
json-type-null = nichts
json-type-number = eine Zahl (wie 1500.5; statt 1.085: 1.0850)
json-type-object = ein Objekt
json-type-string = ein Text
act-task-claim = Übernehmen
act-task-release = Zurückgeben
act-task-delegate = Delegieren
act-task-resolve = An die delegierende Person zurückgeben
act-task-reassign = Jemand anderem geben
act-task-reset = Neu anbieten
act-task-suspend = Aufgabe anhalten
act-task-resume = Aufgabe fortsetzen
act-instance-comment = Kommentieren
act-instance-cancel = Instanz abbrechen
act-instance-suspend = Instanz anhalten
act-instance-resume = Instanz fortsetzen
act-instance-restart = Neu beginnen
field-reason = Grund
field-person = Person
required = nötig
optional = freiwillig
comment = Kommentar
what-will-happen = Was geschehen wird
what-next = Danach
what-stays = Geht weiter
what-waits-for = wartet auf
what-nothing = Nichts ändert sich: Es ist schon so.
ends-with = Die Instanz endet: { $outcome }
ends-cancelled = Die Instanz endet: Sie wird abgebrochen.
preview = Zeigen, was geschehen wird
confirm = Bestätigen: { $action }
leave = Nicht tun
form-mend = Einige Felder brauchen einen anderen Wert.
form-gone = Das ist nicht mehr offen
first-decided = { $who } war zuerst: { $outcome }
first-you = Das haben Sie schon entschieden: { $outcome }
first-acted = { $who } war zuerst
first-suspended = Angehalten von { $who }
first-cancelled = Abgebrochen von { $who }
first-see-above = Was jetzt offen ist, steht oben.
done-task-decide = Ihre Entscheidung ist festgehalten.
done-task-claim = Die Aufgabe gehört Ihnen.
done-task-release = Die Aufgabe wird wieder angeboten.
done-task-delegate = Die Aufgabe ist delegiert.
done-task-resolve = Die Aufgabe ist wieder bei der delegierenden Person.
done-task-reassign = Die Aufgabe ist übergeben.
done-task-reset = Die Aufgabe wird neu angeboten.
done-task-suspend = Die Aufgabe ist angehalten.
done-task-resume = Die Aufgabe ist wieder offen.
done-instance-comment = Ihr Kommentar ist festgehalten.
done-instance-cancel = Die Instanz ist abgebrochen.
done-instance-suspend = Die Instanz ist angehalten.
done-instance-resume = Die Instanz geht weiter.
done-instance-restart = Eine neue Instanz hat begonnen.
done-instance-signal = Das Signal ist gesendet.

# Die weiteren Seiten.
start = Beginnen
start-choose = Wählen Sie, was Sie beginnen.
start-none = Es gibt keinen Ablauf, der beginnen könnte.
flows-search = Wörter aus Schlüssel, Titel oder Beschreibung
start-entity-type = Art des Gegenstands
start-entity-id = Id des Gegenstands
done-instance-start = Die Instanz hat begonnen.
notifications = Mitteilungen
notifications-none = Es gibt keine Mitteilungen für Sie oder Ihre Gruppen.
notification-ASSIGNMENT_CREATED = Angeboten oder zugewiesen
notification-STATUS_CHANGED = Status geändert
notification-MENTION = Sie wurden erwähnt
notification-TIMEOUT_WARNING = Bald fällig
notification-ESCALATION = Eskaliert
unread = ungelesen
mark-read = Als gelesen markieren
mark-read-of = Als gelesen markieren: { $title }
search = Suche
search-hint = Suche (Strg K)
search-help = Suchen Sie nach Wörtern aus Titeln und Zusammenfassungen, nach Ids von Gegenständen, nach Personen, Abläufen und Seiten der Konsole.
search-none = Nichts entspricht „{ $words }“.
search-places = Seiten und Aktionen
search-flows = Abläufe
search-start = Beginnen: { $flow }
search-instances = Instanzen
search-people = Personen
status-running = Läuft
status-suspended = Angehalten
status-completed = Abgeschlossen
status-cancelled = Abgebrochen
inbox-news = { $count ->
    [one] { $count } neue Aufgabe – zeigen
   *[other] { $count } neue Aufgaben – zeigen
}
none = keine
me = Ich
me-id = Id
me-tenant = Mandant
me-groups = Gruppen
me-manager = Vorgesetzte Person
me-roles = Rollen
me-permissions = Was die Rollen erlauben
me-absences = Abwesenheiten
me-absences-none = Sie sind nicht abwesend und vertreten niemanden.
me-absent = Sie sind abwesend; { $substitute } vertritt Sie.
me-stands-in = Sie vertreten { $person }.
preferences = Wie Sie die Seiten wünschen
preference-of-browser = Wie der Browser
time-zone = Zeitzone
theme = Farben
theme-of-device = Wie das Gerät
theme-light = Hell
theme-dark = Dunkel
save = Speichern
saved = Ihre Wahl ist gespeichert.
month-previous = Voriger Monat
month-next = Nächster Monat
month-title = { $month } { $year }
month-away = Abwesend: Vertretung { $substitute }
month-stands-in = Für { $person }
month-1 = Januar
month-2 = Februar
month-3 = März
month-4 = April
month-5 = Mai
month-6 = Juni
month-7 = Juli
month-8 = August
month-9 = September
month-10 = Oktober
month-11 = November
month-12 = Dezember
weekday-1 = Mo
weekday-2 = Di
weekday-3 = Mi
weekday-4 = Do
weekday-5 = Fr
weekday-6 = Sa
weekday-7 = So
me-sessions = Wo Sie angemeldet sind
session-begun = angemeldet
session-used = zuletzt benutzt
session-ends = endet
session-this = Dieser Browser
session-end = Dort abmelden

# Tasten.
keys = Tasten
keys-move = nächste und vorige Aufgabe einer Liste
keys-open = die Aufgabe öffnen
keys-decide = das erste und das zweite Ergebnis
keys-zoom = das Diagramm größer, kleiner und in üblicher Größe
keys-comment = den Kommentar schreiben
keys-search = suchen
keys-help = diese Hilfe
close = Schließen

# Definitionen.
trail = Wo das ist
definitions = Definitionen
definitions-about = Jeder Ablauf mit seinen Versionen. Neue Instanzen nehmen die aktive Version, laufende behalten ihre.
definitions-empty = Es wurde noch nichts veröffentlicht.
column-definition = Definition
column-active = Aktiv
column-newest = Neueste
column-published = Veröffentlicht von
column-version = Version
column-status = Status
column-component = Komponente
column-running = Laufende
version-number = Version { $number }
version-none = keine aktiv
version-active = Aktiv
version-idle = Nicht aktiv
version-retired = Zurückgezogen
version-stopped = Angehalten
version-published = Veröffentlicht von { $who }, { $when }
version-config = Einstellungen dieser Version
running-all = { $count ->
    [one] { $count } Instanz läuft
   *[other] { $count } Instanzen laufen
}
running-more = Mehr als { $count } Instanzen laufen
fact-running = Laufende Instanzen
fact-digest = Komponente (SHA-256)
fact-starts = Gestartet von
fact-seen = Sichtbar für
seen-tenant = alle, die Instanzen lesen dürfen
seen-participants = Beteiligte und ihre Vorgesetzten
seen-participants-and = Beteiligte, ihre Vorgesetzten und { $groups }
fact-reads = Der Ablauf erfährt von Personen
reads-nothing = nur, wer sie sind
reads-groups = ihre Gruppen
reads-permissions = ihre Berechtigungen
reads-comments = Kommentare zu Entscheidungen
reads-inputs = Eingaben zu Entscheidungen
fact-separate = Eine Person entscheidet nur in einem von
fact-sole = Je Gegenstand
sole-per-entity = eine laufende Instanz, gleich welcher Definition
fact-wit = Schnittstelle
fact-sdk = SDK
difference = Unterschiede
difference-against = Vergleichen mit
difference-show = Vergleichen
difference-from = Von Version { $old } zu Version { $new }
difference-component = Die Komponente ist eine andere: Ihre Logik kann anders entscheiden, auch wenn sich unten nichts unterscheidet.
difference-none = Zustände, Übergänge und Einstellungen sind gleich.
difference-states = Zustände
difference-transitions = Übergänge
difference-flow = Der Ablauf als Ganzes
difference-config = Einstellungen
difference-added = neu
difference-removed = entfernt
difference-changed = geändert
difference-more = { $count ->
    [one] { $count } weitere Änderung ist nicht aufgeführt.
   *[other] { $count } weitere Änderungen sind nicht aufgeführt.
}
action-activate = Aktivieren
action-retire = Zurückziehen
action-reinstate = Wieder zulassen
action-stop = Anhalten
action-resume = Fortsetzen
action-force = Trotzdem tun, obwohl es diese Namen nicht gibt. Das Audit hält es fest.
action-effect-activate = Neue Instanzen nehmen von jetzt an Version { $number }.
action-effect-activate-stay = Version { $number } behält ihre laufenden Instanzen: { $running }.
action-effect-activate-undo = Rückgängig machen: Version { $number } wieder aktivieren.
action-effect-activate-first = Keine Version ist jetzt aktiv: Bis es diese ist, kann keine Instanz beginnen.
action-effect-retire = Unter Version { $number } beginnt keine Instanz mehr, und keine wird auf sie umgestellt.
action-effect-retire-running = { $count ->
    [one] { $count } laufende Instanz geht weiter.
   *[other] { $count } laufende Instanzen gehen weiter.
}
action-effect-retire-active = Dies ist die aktive Version: Bis eine andere aktiviert ist, kann keine Instanz beginnen.
action-effect-reinstate = Version { $number } darf wieder aktiviert werden. Bis dahin nehmen neue Instanzen sie nicht.
action-effect-stop = Nichts von Version { $number } läuft mehr: keine Frist wirkt, kein Kind beginnt, niemand entscheidet.
action-effect-stop-running = { $count ->
    [one] { $count } laufende Instanz steht still, bis die Version fortgesetzt wird.
   *[other] { $count } laufende Instanzen stehen still, bis die Version fortgesetzt wird.
}
action-effect-resume = Version { $number } läuft wieder. Fristen und andere Arbeit, die inzwischen fällig wurden, werden sofort erledigt.
action-effect-resume-running = { $count ->
    [one] { $count } Instanz geht weiter.
   *[other] { $count } Instanzen gehen weiter.
}
action-done-activate = Die Version ist aktiv.
action-done-retire = Die Version ist zurückgezogen.
action-done-reinstate = Die Version ist wieder zugelassen.
action-done-stop = Die Version ist angehalten.
action-done-resume = Die Version läuft wieder.
undo-activate = Rückgängig: Version { $number } wieder aktivieren

# Betrieb.
operations = Betrieb
operations-about = Worum sich jemand kümmern muss. Jedes Feld führt zu seiner Liste.
operations-nothing = Hier ist nichts. Alles in Ordnung.
panel-unassignable = Niemand kann es tun
panel-unassignable-about = Instanzen mit einem Zustand, für den zu wenige Personen infrage kommen.
panel-overdue = Überfällig
panel-overdue-about = Laufende Instanzen mit einem Zustand oder einer Aufgabe, deren Frist vorbei ist.
panel-stale = Liegen geblieben
panel-stale-about = Laufende Instanzen, in denen sich seit 14 Tagen nichts geändert hat.
panel-unread = Vielleicht gibt es welche, die Sie sehen dürfen, hinter vielen anderen. Öffnen Sie die Liste.
panel-dead-letters = Abgelehnte Ereignisse
panel-dead-letters-about = Ereignisse, die Kafka endgültig abgelehnt hat. Spätere Ereignisse derselben Instanz warten dahinter.
panel-webhooks = Webhooks
panel-webhooks-about = Empfänger, die Zustellungen nicht angenommen haben oder abgeschaltet sind.
panel-jobs = Fehlschlagende Jobs
panel-jobs-about = Aufgeschobene Arbeit, die fehlgeschlagen ist. Sie wird mit wachsenden Pausen wiederholt.
panel-hosts = Hosts
panel-hosts-about = Prozesse von wrkflw, die auf dieser Datenbank laufen. Ein ausgefallener steht noch 30 Sekunden hier.
hosts-versions = Mehrere Versionen laufen: { $versions }. Die Aktualisierung ist nicht abgeschlossen.
hosts-without-relay = Kein Host sendet Ereignisse an Kafka.
hosts-without-timers = Kein Host führt Jobs aus: Fristen wirken nicht.
hosts-without-notifier = Kein Host sendet Benachrichtigungen und Webhooks.
column-host = Host
column-roles = Rollen
column-started = Gestartet
column-seen = Letztes Lebenszeichen
column-action = Befehl
column-reason = Grund
figures = Im Verlauf
figures-range = Zeitraum
figures-span = Von { $from } bis { $until }, in Schritten von { $step }.
figures-values = Zahlen
figures-none = Alle sind 0.
range-hour = Letzte Stunde
range-day = Letzter Tag
range-week = Letzte Woche
figures-throughput = Durchsatz
figures-throughput-about = Was getan wurde. Das Audit hat jedes Einzelne.
figures-refused = Ablehnungen
figures-refused-about = Abgelehnte Befehle nach ihrem Grund. Die Liste hat jene, deren Aufrufer es nicht durfte; die übrigen werden nur gezählt.
figures-relay = Relay
figures-relay-about = Ereignisse, die auf Kafka warten. Die Liste hat jene, die Kafka abgelehnt hat.
figures-webhooks = Zustellungen
figures-webhooks-about = Zustellungen, die auf ihre Empfänger warten.
figures-jobs = Wiederholungen von Jobs
figures-jobs-about = Jobs, die fehlgeschlagen sind und wiederholt werden.
figure-decisions = Entscheidungen
figure-starts = Gestartete Instanzen
figure-refusals = Abgelehnte Befehle
figure-events-waiting = Wartende Ereignisse
figure-events-oldest = Alter des ältesten Ereignisses
figure-deliveries-waiting = Wartende Zustellungen
figure-deliveries-oldest = Alter der ältesten Zustellung
figure-jobs = Wartende Jobs
figure-sum = insgesamt { $value }
figure-maximum = jetzt { $value }
figure-described = Höchstens { $peak } in einem Schritt, { $last } im letzten.
duration-seconds = { $count } s
duration-minutes = { $count } min
duration-hours = { $count } h
refusals = Abgelehnte Befehle
refusals-about = Befehle, die abgelehnt wurden, weil der Aufrufer es nicht durfte, die neuesten zuerst.
refusals-of = Befehle, die mit dem Grund { $reason } abgelehnt wurden, die neuesten zuerst. Was aus einem anderen Grund als den Rechten des Aufrufers abgelehnt wurde, wird gezählt und nicht aufbewahrt.
refusals-empty = Keiner wurde aufbewahrt. Aufbewahrt werden nur Befehle, deren Aufrufer es nicht durfte.
column-instance = Instanz
column-state = Zustand
column-next-deadline = Nächste Frist
column-changed = Letzte Änderung
column-people = Personen
column-job = Job
column-error = Fehler
column-attempts = Versuche
column-next = Nächster Versuch
column-receiver = Empfänger
column-events = Ereignisse
column-failures = Aufgegeben
column-event = Ereignis
column-sequence = Nummer
column-since = Seit
column-delivery = Zustellung
column-when = Wann
column-answer = Antwort
column-duration = Dauer
job-deadline = Frist
job-start_child = Beginn eines Kindes
job-cancel_child = Abbruch eines Kindes
job-child_ended = Ende eines Kindes
job-match_signals = Suche nach Signalen
job-deliver_signal = Zustellung eines Signals
job-reassess_instance = Neue Bewertung
job-call_service = Aufruf eines Dienstes
fact-event = Id des Ereignisses
content = Inhalt
content-missing = Der Inhalt kann nicht gezeigt werden: Er ist nicht unter den jüngsten Ereignissen der Instanz, oder Sie dürfen Ereignisse nicht lesen.
look-again = Noch einmal nachsehen
dead-letter = Abgelehntes Ereignis
dead-letter-waiting = Wartende Ereignisse
dead-letter-followers = { $count ->
    [0] nichts wartet dahinter
    [one] { $count } Ereignis wartet dahinter
   *[other] { $count } Ereignisse warten dahinter
}
instances-count = { $count ->
    [one] { $count } Instanz
   *[other] { $count } Instanzen
}
dead-letter-retry = Erneut senden
dead-letter-discard = Verwerfen
dead-letter-choose = Wählen Sie mindestens eine Instanz, und schreiben Sie einen Grund.
dead-letter-discarded = { $count ->
    [one] Das abgelehnte Ereignis von { $count } Instanz ist verworfen, und die dahinter werden gesendet.
   *[other] Die abgelehnten Ereignisse von { $count } Instanzen sind verworfen, und die dahinter werden gesendet.
}
dead-letter-discard-many = { $count ->
    [one] Das abgelehnte Ereignis von { $count } Instanz wird nie gesendet. Empfängern fehlt die Nummer; die Geschichte der Instanz behält es. Was dahinter wartet, wird gesendet.
   *[other] Die abgelehnten Ereignisse von { $count } Instanzen werden nie gesendet. Empfängern fehlen die Nummern; die Geschichten der Instanzen behalten sie. Was dahinter wartet, wird gesendet.
}
choice-group = Alle mit diesem Fehler, auch auf anderen Seiten
choice-all = Alle, auch auf anderen Seiten
choice-retry = Die gewählten erneut senden
choice-discard = Die gewählten verwerfen
choice-bounded = Vielleicht gibt es mehr: Ein Formular nimmt { $count }. Wiederholen Sie es für die übrigen.
sent = Was aus den erneut gesendeten wurde
sent-first = Diese Seite verfolgt die ersten { $count } davon.
sent-refused = Erneut abgelehnt
sent-unknown = Nicht mehr abgelehnt
dead-letter-sent = { $count ->
    [one] { $count } Ereignis wird erneut gesendet. Lehnt Kafka es wieder ab, erscheint es wieder hier.
   *[other] { $count } Ereignisse werden erneut gesendet. Lehnt Kafka sie wieder ab, erscheinen sie wieder hier.
}
dead-letter-retry-effect = { $count ->
    [one] { $count } Ereignis wird erneut gesendet.
   *[other] { $count } Ereignisse werden erneut gesendet, in ihrer Reihenfolge.
}
dead-letter-discard-effect = { $kind } wird nie gesendet. Empfängern fehlt die Nummer; die Geschichte der Instanz behält es.
dead-letter-discard-rest = { $count ->
    [0] Kein Ereignis wartet dahinter.
    [one] { $count } Ereignis dahinter wird gesendet.
   *[other] { $count } Ereignisse dahinter werden gesendet.
}
dead-letter-done-retry = Die Ereignisse werden erneut gesendet. Lehnt Kafka eines wieder ab, erscheint es wieder hier.
dead-letter-done-discard = Das Ereignis ist verworfen, und die dahinter werden gesendet.
dead-letter-more = Weitere Ereignisse dieser Instanz warten. Wiederholen Sie den Schritt für diese.
dead-letter-more-of = { $count ->
    [one] Weitere Ereignisse von { $count } Instanz warten. Senden Sie auch diese noch einmal.
   *[other] Weitere Ereignisse von { $count } Instanzen warten. Senden Sie auch diese noch einmal.
}
dead-letter-gone = Kein Ereignis dieser Instanz wartet.
webhooks-about = Die Empfänger von Ereignissen. Schlägt einer fehl, wird mit wachsenden Pausen wiederholt, und am Ende wird er abgeschaltet.
webhooks-empty = Es gibt keinen Empfänger.
webhook-active = Aktiv
webhook-disabled = Abgeschaltet
webhook-failures = { $count ->
    [one] { $count } Zustellung aufgegeben
   *[other] { $count } Zustellungen aufgegeben
}
deliveries = Zustellungen
deliveries-empty = In den letzten 30 Tagen gibt es keine solche Zustellung.
deliveries-count = { $count ->
    [one] { $count } Zustellung
   *[other] { $count } Zustellungen
}
delivery-attempts = { $count ->
    [one] { $count } Versuch
   *[other] { $count } Versuche
}
deliveries-choose = Wählen Sie mindestens eine Zustellung. Verwerfen braucht auch einen Grund.
deliveries-discarded = { $count ->
    [one] { $count } Zustellung ist verworfen.
   *[other] { $count } Zustellungen sind verworfen.
}
deliveries-discard-many = { $count ->
    [one] { $count } Zustellung wird nicht mehr gesendet. Von Hand kann sie noch gesendet werden.
   *[other] { $count } Zustellungen werden nicht mehr gesendet. Von Hand können sie noch gesendet werden.
}
deliveries-retry = Alle aufgegebenen erneut senden
deliveries-retried = { $count ->
    [one] { $count } Zustellung wird erneut gesendet.
   *[other] { $count } Zustellungen werden erneut gesendet.
}
delivery = Zustellung
delivery-all = Alle
delivery-dead = Aufgegeben
delivery-pending = Wartet
delivery-delivered = Angenommen
delivery-discarded = Verworfen
delivery-next = Nächster Versuch
delivery-instance = Zur Instanz
delivery-retry = Erneut senden
delivery-discard = Verwerfen
delivery-retry-effect = Sie wird sofort gesendet, und der Empfänger wird eingeschaltet, falls er abgeschaltet ist. Der Versuch erscheint unten mit seinem Ergebnis.
delivery-discard-effect = Sie wird nicht mehr gesendet. Von Hand kann sie noch gesendet werden.
delivery-done-retry = Sie wird erneut gesendet. Der Versuch erscheint unten.
delivery-done-discard = Sie ist verworfen.
attempts = Versuche
attempt-no-answer = keine Antwort
attempt-duration = { $count } ms

# Wer handeln konnte.
who-could-act = Wer handeln konnte
who-instance = Die Instanz
who-revision = Revision { $revision }
who-at = Um ({ $zone })
who-show = Zeigen
who-now = Jetzt
who-nothing = Damals war keine Aufgabe offen.
who-able = Darf handeln
who-nobody = Niemand darf hier handeln.
who-excluded = Darf nicht handeln, obwohl es angeboten ist
who-holds = { $who } hat sie.
who-more = Es gibt mehr Personen, als gezeigt werden.
who-more-tasks = Es gibt mehr offene Aufgaben, als gezeigt werden.
way-candidate = ihnen ist es angeboten
way-group = Mitglied von { $who }
way-owner = hat die Aufgabe
way-substitute = vertritt { $who }
exclusion-requester = es ist der eigene Antrag
exclusion-excluded = der Ablauf schließt sie aus
exclusion-already-decided = hat schon entschieden
exclusion-not-initiator = es ist nur für die beginnende Person
exclusion-for-requester = vertritt { $who }, deren Antrag es ist
exclusion-for-excluded = vertritt { $who }, die der Ablauf ausschließt
exclusion-for-decided = vertritt { $who }, die schon entschieden hat
exclusion-owned = { $who } hat die Aufgabe
exclusion-lost-eligibility = kommt nicht mehr infrage

# Das Audit.
audit = Audit
audit-about = Was geschah: in Instanzen, Definitionen, im Verzeichnis und im Betrieb.
audit-actor = Getan von
audit-type = Art des Eintrags
audit-from = Von ({ $zone })
audit-until = Vor ({ $zone })
audit-sort-newest = Neueste zuerst
audit-empty = Kein Eintrag passt. Ein Eintrag erscheint, sobald ein Prüfpunkt ihn abdeckt, wenige Sekunden später.
audit-unsigned = Kein Eintrag wird gezeigt, weil kein Prüfpunkt signiert ist. Ein Host signiert sie, wenn er einen Schlüssel in checkpoint_keys und die Rolle timers hat.
audit-signed = Letzter Prüfpunkt:
audit-host = der Host
column-actor = Getan von
column-entry = Eintrag
column-about = Worüber
stream-instance = Instanz
stream-definition = Definition
stream-directory = Verzeichnis
stream-operation = Betrieb

# Personen, Gruppen und Rollen.
people = Personen
groups = Gruppen
roles = Rollen
people-search = Anfang eines Namens oder einer Kennung
people-nothing = Es gibt keine.
people-no-groups = In keiner Gruppe.
people-no-members = Die Gruppe hat keine Mitglieder: Arbeit, die ihr angeboten wird, hat niemanden.
people-no-absences = Weder jetzt noch später abwesend.
people-roles-about = Zugangstoken sagen, welche Rollen eine Person hat. Hier steht, was jede Rolle erlaubt.
people-members = Mitglieder
people-permissions = { $count ->
    [one] { $count } Berechtigung
   *[other] { $count } Berechtigungen
}
people-leave = Mitgliedschaft in { $name } beenden
people-remove = { $name } entfernen
people-return = Abwesenheit von { $name } beenden
people-field-id = Kennung
people-field-name = Name
people-field-manager = Vorgesetzte Person
people-field-group = Gruppe
people-field-person = Person
people-field-substitute = Vertretung
people-field-from = Von (UTC)
people-field-until = Bis (UTC)
people-field-definitionKey = Nur für Arbeit dieser Definition (ihr Schlüssel)
people-field-permissions = Berechtigungen
people-field-others = Berechtigungen, nach denen Abläufe fragen
people-field-others-help = Eine pro Zeile, zum Beispiel plan:sign.
people-do-add-person = Person anlegen
people-do-add-group = Gruppe anlegen
people-do-add-role = Rolle anlegen
people-do-rename = Umbenennen
people-do-manager = Vorgesetzte Person setzen
people-do-no-manager = Vorgesetzte Person entfernen
people-do-join = In eine Gruppe aufnehmen
people-do-leave = Mitgliedschaft beenden
people-do-absent = Abwesenheit eintragen
people-do-return = Abwesenheit beenden
people-do-add-member = Mitglied aufnehmen
people-do-remove-member = Mitglied entfernen
people-do-permit = Berechtigungen ändern
people-do-remove-role = Rolle entfernen
people-effect-add-person = Die Person wird angelegt. Sie darf, was die Rollen ihres Zugangstokens erlauben.
people-effect-add-group = Die Gruppe wird angelegt, ohne Mitglieder.
people-effect-add-role = Die Rolle wird angelegt. Sie gilt ab der nächsten Anfrage.
people-effect-rename = Die Seiten zeigen den neuen Namen. Sonst ändert sich nichts.
people-effect-manager = Arbeit, die Abläufe der vorgesetzten Person anbieten, geht ab jetzt an diese Person. Früher Angebotenes bleibt.
people-effect-no-manager = Arbeit, die Abläufe der vorgesetzten Person anbieten, hat ab jetzt niemanden. Früher Angebotenes bleibt.
people-effect-join = Die Person bekommt, was der Gruppe angeboten wird, auch was jetzt offen ist.
people-effect-leave = Die Person bekommt nicht mehr, was der Gruppe angeboten wird. Offene Arbeit, die sie als Mitglied hat, wird neu bewertet.
people-effect-absent = Die Vertretung darf in dieser Zeit an der Arbeit der Person handeln.
people-effect-return = Die Vertretung darf an der Arbeit der Person nicht mehr handeln.
people-effect-add-member = Die Person bekommt, was der Gruppe angeboten wird, auch was jetzt offen ist.
people-effect-remove-member = Die Person bekommt nicht mehr, was der Gruppe angeboten wird. Offene Arbeit, die sie als Mitglied hat, wird neu bewertet.
people-effect-permit = Es gilt ab der nächsten Anfrage, für alle, deren Token diese Rolle hat.
people-effect-remove-role = Die Rolle erlaubt nichts mehr und wird nicht mehr aufgeführt.
people-effect-known = Diese Kennung gibt es schon, mit dem Namen { $name }. Nur der Name ändert sich.
people-orphans = { $count ->
    [0] Keine offene Aufgabe bleibt ohne jemanden.
    [one] { $count } offene Aufgabe bleibt ohne jemanden:
   *[other] { $count } offene Aufgaben bleiben ohne jemanden:
}
people-orphan = { $what }: { $why }
people-orphans-more = Es kann mehr geben; nicht alle konnten untersucht werden.
people-role-gains = Sie erlaubt auch: { $permissions }
people-role-loses = Sie erlaubt nicht mehr: { $permissions }
people-done-add-person = Die Person ist angelegt.
people-done-add-group = Die Gruppe ist angelegt.
people-done-add-role = Die Rolle ist angelegt.
people-done-rename = Der Name ist geändert.
people-done-manager = Die vorgesetzte Person ist gesetzt.
people-done-no-manager = Die vorgesetzte Person ist entfernt.
people-done-join = Die Person ist jetzt Mitglied.
people-done-leave = Die Mitgliedschaft ist beendet.
people-done-absent = Die Abwesenheit ist eingetragen.
people-done-return = Die Abwesenheit ist beendet.
people-done-add-member = Die Person ist jetzt Mitglied.
people-done-remove-member = Die Person ist kein Mitglied mehr.
people-done-permit = Die Berechtigungen sind geändert.
people-done-remove-role = Die Rolle ist entfernt.
column-name = Name
column-id = Kennung
column-role = Rolle
column-permits = Erlaubt
column-group = Gruppe
column-person = Person
column-absent = Abwesend
column-substitute = Vertretung
column-from = Von
column-until = Bis
column-do = Änderung

# Die Berichte des Audits.
audit-entries = Einträge
compliance = Selbstgenehmigungen
compliance-about = Entscheidungen über eigene Anträge, und Versuche dazu, die der Host abgelehnt hat.
compliance-examined = Untersuchte Entscheidungen
compliance-own-work = In Zuständen eigener Arbeit, wo sie erlaubt sind
compliance-self-approvals = Selbstgenehmigungen
compliance-refused = Abgelehnte Versuche
compliance-kept = Niemand hat über einen eigenen Antrag entschieden.
compliance-broken = Jemand hat über einen eigenen Antrag entschieden. Die neuesten Entscheidungen sind aufgeführt.
column-decision = Entscheidung
column-attempt = Versuch
custody = Nachweiskette
custody-about = Jede Entscheidung und Delegation in ihrer Reihenfolge, mit ihrem Siegel, wie dieser Host es geprüft hat.
custody-made = Erstellt von { $who },
custody-seals = { $valid } von { $all } Siegeln sind gültig.
custody-more = Es gibt mehr Einträge, als eine Druckseite hat. Die Datei hat alle.
custody-file = Als Datei speichern (CSV)
custody-empty = Noch hat niemand etwas entschieden oder delegiert.
custody-delegate = Delegiert an { $who }
custody-resolve = Zurückgegeben an { $who }
column-custody = Was
column-seal = Siegel
seal-VALID = gültig
seal-INVALID = ungültig
seal-UNKNOWN_KEY = Schlüssel unbekannt
seal-UNKNOWN_VERSION = Version unbekannt
seal-MISSING = fehlt
verify = Diese Instanz prüfen
verify-whole = Alles ist so, wie es aufgezeichnet wurde.
verify-findings = { $count ->
    [one] { $count } Abweichung von dem, was aufgezeichnet wurde.
   *[other] { $count } Abweichungen von dem, was aufgezeichnet wurde.
}
verify-counts = { $entries } Einträge, { $decisions } Entscheidungen, { $delegations } Delegationen, { $seals } gültige Siegel, { $leaves } Blätter von Checkpoints.

# Veröffentlichen und migrieren.
upload = Version veröffentlichen
upload-again = Mit anderen Einstellungen veröffentlichen
upload-about = Eine Komponente wird geprüft und die nächste Version ihrer Definition. Nichts benutzt sie, bevor sie aktiviert wird. Sie sind ihr Autor.
upload-key = Schlüssel der Definition
upload-version = Komponente einer veröffentlichten Version wieder benutzen
upload-component = Komponente (eine Datei auf .wasm)
upload-config = Einstellungen (JSON)
upload-problems = Was die Prüfung ergab
upload-busy = Dieser Host liest gerade andere Dateien. Versuchen Sie es gleich noch einmal.
column-place = Wo
column-problem = Was
action-done-publish = Die Version ist veröffentlicht. Neue Instanzen nehmen sie, sobald sie aktiviert ist.
action-done-publish-again = Dieser Inhalt war schon veröffentlicht, als diese Version.
migrate = Instanzen migrieren
migrate-from = Instanzen von { $key }, Version { $number }, migrieren
migrate-about = Instanzen behalten Zustand, Entscheidungen und Daten. Offene Arbeit wird so angeboten, wie die neue Version es bestimmt.
migrate-version = Auf Version
migrate-state = Nur die in diesem Zustand
migrate-state-help = Der Name eines aktiven Zustands. Leer: alle laufenden und angehaltenen Instanzen.
migrate-states = Umbenannte Zustände
migrate-states-help = Einer pro Zeile: alter Name = neuer Name.
migrate-total = { $count ->
    [0] Keine Instanz würde migriert.
    [one] { $count } Instanz würde migriert.
   *[other] { $count } Instanzen würden migriert.
}
migrate-total-more = { $count } Instanzen würden migriert; es kann mehr geben.
migrate-tried = { $tried } davon versucht: { $done } können migriert werden, { $refused } werden abgelehnt, { $failed } schlagen fehl.
migrate-not = { $id }: { $why }
bulk-operations = Operationen mit vielen Instanzen
bulk-about = Migrationen und Abbrüche vieler Instanzen, neueste zuerst.
bulk-empty = Es gab noch keine.
bulk-migrate = Migration
bulk-cancel = Abbruch
bulk-counts = { $instances }: { $done } erledigt, { $refused } abgelehnt, { $failed } fehlgeschlagen
bulk-stop = Vorzeitig beenden
bulk-result-done = erledigt
bulk-result-refused = abgelehnt
bulk-result-failed = fehlgeschlagen
bulk-result-waiting = wartet
column-operation = Operation
column-progress = Fortschritt
column-result = Ergebnis

# Daten und Diagramm einer Instanz.
data-changes = Was jeder Schritt geändert hat
data-changes-none = Kein Schritt hat die Daten geändert.
data-start = Start
data-hidden = Eine Entscheidung, die bis zum Ende der Abstimmung verborgen ist
entry-hash = Hash
entry-seal = Siegel: { $state }
seals-more = Siegel späterer Entscheidungen stehen nicht hier. Die Nachweiskette hat sie.
diagram-file = Als Datei (SVG)
zoom = Größe des Diagramms
zoom-smaller = Kleiner
zoom-larger = Größer
zoom-usual = Übliche Größe
zoom-fit = So breit wie die Seite
zoom-size = { $size } %
state-ways = Wege hinaus:
column-step = Schritt
column-data = Werte davor und danach
stream-task = Aufgabe
# Viele Aufgaben auf einmal.
bulk = Viele Aufgaben auf einmal
bulk-select = Auswählen: { $title }
bulk-all = Alle, die passen, höchstens 100
bulk-claim = Ausgewählte übernehmen
bulk-release = Ausgewählte freigeben
bulk-decide = Ausgewählte entscheiden
bulk-head-claim = { $count ->
    [one] { $count } Aufgabe übernehmen
   *[other] { $count } Aufgaben übernehmen
}
bulk-head-release = { $count ->
    [one] { $count } Aufgabe freigeben
   *[other] { $count } Aufgaben freigeben
}
bulk-head-decide = { $count ->
    [one] { $count } Aufgabe entscheiden
   *[other] { $count } Aufgaben entscheiden
}
bulk-nothing = Keine Aufgabe ist ausgewählt. Haken Sie die an, die Sie meinen, oder „Alle, die passen“.
bulk-more = Es passen mehr Aufgaben, als auf einmal gehen. Dies sind die ersten { $count }.
bulk-outcome = Entscheidung
bulk-comment = Kommentar zu jeder von ihnen
bulk-which = Welche
bulk-will = { $count ->
    [0] Keine Aufgabe wird geändert.
    [one] { $count } Aufgabe wird geändert.
   *[other] { $count } Aufgaben werden geändert.
}
bulk-refused = { $count ->
    [one] { $count } wird abgelehnt.
   *[other] { $count } werden abgelehnt.
}
bulk-results = Was geschehen ist
bulk-done = { $count ->
    [one] { $count } Aufgabe ist erledigt.
   *[other] { $count } Aufgaben sind erledigt.
}
bulk-was-refused = { $count ->
    [one] { $count } wurde abgelehnt.
   *[other] { $count } wurden abgelehnt.
}
bulk-group-will = werden geändert
bulk-group-done = erledigt

# Spalten und gespeicherte Ansichten.
inbox-columns = Spalten
inbox-column-state = Zustand
inbox-column-priority = Priorität
inbox-column-due = Fällig
inbox-column-created = Seit
inbox-column-holder = Bei wem
inbox-column-initiator = Begonnen von
inbox-column-flow = Ablauf
view-save = Diese Ansicht speichern
view-change = Diese Ansicht ändern
view-name = Name der Ansicht
view-default = Zuerst zeigen
view-keep = Speichern
view-delete = Ansicht löschen

# Eine Ansicht abarbeiten.
queue = Abarbeiten
queue-begin = Diese abarbeiten
queue-place = Aufgabe { $place }
queue-previous = Vorige
queue-next = Nächste
queue-leave = Zurück zur Liste
queue-done = Ihre Entscheidung ist festgehalten. Dies ist die nächste Aufgabe.
queue-end = Ihre Entscheidung ist festgehalten. In dieser Ansicht ist keine Aufgabe mehr.
keys-queue = vorige und nächste Aufgabe beim Abarbeiten einer Liste
keys-send = zeigen, was geschehen wird, dann bestätigen
keys-select = die Aufgabe einer Liste auswählen
draft-saved = Entwurf gespeichert
draft-refused = Der Entwurf ist nicht gespeichert: { $reason }
draft-save = Entwurf speichern
undo = Rückgängig: { $action }
mentions = Personen erwähnen
mentions-help = Sie werden benachrichtigt. Wer erwähnt wird, darf die Instanz sehen.
mentions-person = Person, die erwähnt wird
commented-on = { $who } an { $others }

# An instance inside of a page of a product, and the sample product.
embed-read-only = Diese Seite zeigt die Arbeit nur. Entscheiden Sie in der Konsole.
embed-decides-alone = Diese Seite entscheidet nur die offenen Aufgaben dieser Instanz.
embed-token = Diese Seite darf die Arbeit nicht mehr zeigen. Laden Sie sie neu.
embed-origin = Die Arbeit darf auf dieser Seite nicht gezeigt werden.
embed-unreachable = Die Arbeit ist gerade nicht erreichbar. Was Sie sehen, kann veraltet sein.
samples = Beispielprodukt
samples-about = Die Dokumente eines Produkts, das seine Arbeit auf den eigenen Seiten zeigt.
sample-type-rfa = Genehmigungsantrag
sample-type-transmittal = Übermittlung
sample-type-circulation = Umlauf
sample-type-correspondence = Schriftverkehr
sample-content = Das Dokument
sample-number = Nummer
sample-kind = Art
sample-text = Das ist der eigene Inhalt des Produkts. Die Arbeit darüber kommt von diesem Host.
sample-seen-as = Gesehen als

# What became of the events of an instance.
event-status = Zustellungen des Ereignisses
kafka-waiting = Wartet
kafka-parked = Abgelehnt
kafka-discarded = Verworfen
kafka-published = Veröffentlicht

# Activation.
action-effect-activate-more = Es laufen mehr Instanzen, als gezählt werden.

# Notes of versions.
upload-note = Warum sie veröffentlicht wird

# Checkpoints and the export of the audit.
audit-file = Als Datei speichern
audit-file-about = Alle passenden Einträge, ein JSON-Objekt je Zeile, höchstens 10.000; die letzte Zeile sagt, ob es mehr gibt.
checkpoints = Prüfpunkte
checkpoints-about = Signierte Wurzeln aller Einträge, die neuesten zuerst. Wer eine außerhalb der Datenbank aufbewahrt, erkennt spätere Änderungen an dem, was sie umfasst.
checkpoints-empty = Kein Prüfpunkt ist signiert. Ein Host signiert sie, wenn er einen Schlüssel in checkpoint_keys hat.
column-checkpoint = Nummer
column-covers = Einträge, die er hinzufügt
column-signature = Signatur
column-root = Wurzel
checkpoint-VALID = gültig
checkpoint-INVALID = ungültig
checkpoint-UNKNOWN_KEY = unbekannter Schlüssel
checkpoint-OUT_OF_ORDER = setzt den vorigen nicht fort
checkpoint-leaves = { $first } bis { $last }

# Absences that one enters, and tokens.
absence-day = Abwesenheit eintragen: { $day }
absence-choose = Wählen Sie einen Tag, um eine Abwesenheit einzutragen; ein zweiter Tag macht daraus einen Zeitraum.
absence-first = Erster Tag
absence-last = Letzter Tag
absence-effect = Ihre Vertretung darf Ihre Arbeit vom Beginn des ersten bis zum Ende des letzten Tages erledigen.
me-tokens = Token
me-tokens-about = Token von Programmen stammen vom Identitätsanbieter oder von denen, die sie mit dem Schlüssel des Hosts signieren: Der Host führt keine Liste und kann keines vor dem Ablauf widerrufen. Er beendet die Sitzungen von Browsern:
me-notified = Worüber Sie Mitteilungen bekommen
me-notified-about = Was Sie abschalten, kommt nicht mehr zu Ihnen, auch nicht per Webhook. Vorhandene Mitteilungen bleiben.
