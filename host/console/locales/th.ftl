# กรอบหน้า
skip = ข้ามไปยังเนื้อหา
nav = เมนูหลัก
inbox = กล่องงาน
sign-in = เข้าสู่ระบบ
sign-out = ออกจากระบบ
language = ภาษา
api-docs = เอกสาร API
to-inbox = กลับไปที่กล่องงาน

# การเข้าสู่ระบบ
sign-in-demo = เครื่องนี้ใช้สำหรับการพัฒนา เลือกว่าคุณคือใคร:
sign-in-no-group = ไม่มีกลุ่ม
sign-in-token = เข้าสู่ระบบด้วยโทเค็น
sign-in-token-field = โทเค็นการเข้าถึง
sign-in-token-help = โทเค็นเดียวกับที่โปรแกรมส่งให้ API เซสชันจะสิ้นสุดไม่ช้ากว่าโทเค็น
sign-in-no-token = วางโทเค็นการเข้าถึง
sign-in-refused = โทเค็นไม่ได้รับการยอมรับ: { $detail }

# เวลา
moment-now = ขณะนี้
moment-in-minutes = อีก { $count } นาที
moment-in-hours = อีก { $count } ชั่วโมง
moment-in-days = อีก { $count } วัน
moment-ago-minutes = { $count } นาทีที่แล้ว
moment-ago-hours = { $count } ชั่วโมงที่แล้ว
moment-ago-days = { $count } วันที่แล้ว

# งาน
started-by = เริ่มโดย { $who }
suspended = ถูกพัก
due = ครบกำหนด
since = ตั้งแต่
with = อยู่กับ
offered-to = เสนอให้
held-by-you = ของคุณ
holder-for = { $owner } แทน { $other }
priority-number = ความสำคัญ { $number }
claim = รับงาน
claim-of = รับงาน: { $title }

# กล่องงาน
inbox-views = มุมมอง
inbox-view-mine = ของฉัน
inbox-view-available = รับได้
inbox-view-groups = กลุ่มของฉัน
inbox-view-all = ทั้งหมด
inbox-count = { $count } งาน
inbox-count-more = มากกว่า { $count } งาน
inbox-filter = ตัวกรอง
inbox-words = ค้นหา
inbox-definition = ขั้นตอนงาน
inbox-priority = ความสำคัญตั้งแต่
inbox-due-before = ครบกำหนดก่อน
inbox-sort = ลำดับ
inbox-sort-created = เก่าที่สุดก่อน
inbox-sort-due = ครบกำหนดก่อน
inbox-apply = ใช้ตัวกรอง
inbox-clear = แสดงทั้งหมดในมุมมองนี้
inbox-see-available = ดูงานที่คุณรับได้
inbox-empty-mine = คุณไม่มีงานที่ถืออยู่
inbox-empty-available = ไม่มีงานรอคุณ งานใหม่จะปรากฏที่นี่เมื่อมีการเสนอให้คุณหรือกลุ่มของคุณ
inbox-empty-groups = กลุ่มของคุณไม่มีงานให้รับ ผู้ดูแลรายชื่อบอกได้ว่าคุณอยู่ในกลุ่มใด
inbox-empty-all = ไม่มีงานที่เปิดอยู่เลย
inbox-empty-filtered = ไม่มีงานในมุมมองนี้ที่ตรงกับตัวกรอง
pages = หน้า
first-page = หน้าแรก
next-page = หน้าถัดไป

# เหตุที่ทำไม่ได้
trouble-missing = ไม่พบ
trouble-missing-detail = ไม่มีหน้าที่ที่อยู่นี้ ลิงก์อาจเก่าหรือไม่ครบ
trouble-forbidden = คุณทำสิ่งนี้ไม่ได้
trouble-refused = ขณะนี้ทำไม่ได้
trouble-failed = เกิดข้อผิดพลาดที่นี่
trouble-request = สำหรับผู้ดูแลระบบ: คำขอ { $id }
trouble-foreign = ไม่รับแบบฟอร์ม
trouble-foreign-detail = แบบฟอร์มมาจากเว็บไซต์อื่น หรือคุณเข้าสู่ระบบใหม่หลังจากโหลดหน้านี้ เปิดหน้านี้อีกครั้งแล้วทำซ้ำ

# อินสแตนซ์
tabs = ส่วนของหน้า
tab-timeline = ลำดับเวลา
tab-diagram = แผนภาพ
tab-data = ข้อมูล
diagram-alt = สถานะและการเปลี่ยนสถานะของขั้นตอนงาน พร้อมเส้นทางที่ผ่านมา ลำดับเวลาบอกสิ่งเดียวกันเป็นข้อความ
data-now = ข้อมูลของขั้นตอนงานในขณะนี้
completed = เสร็จสิ้น
cancelled = ถูกยกเลิก
stopped-by = { $who }: { $reason }
about-instance = เริ่มโดย { $who } { $when } ขั้นตอนงาน { $flow }
waits-for = รอ { $who }
waits = กำลังรอ
nobody = ขณะนี้ไม่มีใครทำงานนี้ได้ ผู้ดูแลระบบต้องมอบให้ใครสักคน
needs-decisions = ต้องมี { $count } การตัดสินใจที่มีผลเดียวกัน
decided = { $who }: { $outcome }
decided-for = { $who } แทน { $other }: { $outcome }
left-by = { $trigger } โดย { $who }
left = { $trigger }
ended-with = สิ้นสุด: { $outcome }
ahead-certain = จะมาถึง
ahead-possible = อาจมาถึง

# การกระทำ
why-not = สิ่งที่คุณทำไม่ได้ในขณะนี้ และเหตุผล
refused-without-reason = ขณะนี้ทำไม่ได้
act-task-claim = รับงาน
act-task-release = คืนงาน
act-task-delegate = มอบหมายแทน
act-task-resolve = คืนให้ผู้มอบหมาย
act-task-reassign = ส่งต่อให้ผู้อื่น
act-task-reset = เสนอใหม่
act-task-suspend = พักงาน
act-task-resume = ทำงานต่อ
act-instance-cancel = ยกเลิกอินสแตนซ์
act-instance-suspend = พักอินสแตนซ์
act-instance-resume = ดำเนินอินสแตนซ์ต่อ
act-instance-restart = เริ่มใหม่
field-reason = เหตุผล
field-person = บุคคล
required = จำเป็น
optional = ไม่บังคับ
comment = ความเห็น
what-will-happen = สิ่งที่จะเกิดขึ้น
what-next = ต่อไป
what-stays = ดำเนินต่อ
what-waits-for = รอ
what-nothing = ไม่มีอะไรเปลี่ยน เป็นเช่นนั้นอยู่แล้ว
ends-with = อินสแตนซ์สิ้นสุด: { $outcome }
ends-cancelled = อินสแตนซ์สิ้นสุด: ถูกยกเลิก
preview = แสดงสิ่งที่จะเกิดขึ้น
confirm = ยืนยัน: { $action }
leave = ไม่ทำ
form-mend = บางช่องต้องแก้ไขค่า
form-gone = สิ่งนี้ไม่เปิดอยู่แล้ว
first-decided = { $who } ทำก่อน: { $outcome }
first-you = คุณตัดสินใจเรื่องนี้แล้ว: { $outcome }
first-acted = { $who } ทำก่อน
first-see-above = สิ่งที่เปิดอยู่ในขณะนี้แสดงไว้ด้านบน
done-task-decide = บันทึกการตัดสินใจของคุณแล้ว
done-task-claim = งานนี้เป็นของคุณแล้ว
done-task-release = เสนองานอีกครั้งแล้ว
done-task-delegate = มอบหมายงานแล้ว
done-task-resolve = งานกลับไปยังผู้มอบหมายแล้ว
done-task-reassign = ส่งต่องานแล้ว
done-task-reset = เสนองานใหม่แล้ว
done-task-suspend = พักงานแล้ว
done-task-resume = งานเปิดอีกครั้งแล้ว
done-instance-cancel = ยกเลิกอินสแตนซ์แล้ว
done-instance-suspend = พักอินสแตนซ์แล้ว
done-instance-resume = อินสแตนซ์ดำเนินต่อแล้ว
done-instance-restart = อินสแตนซ์ใหม่เริ่มแล้ว
done-instance-signal = ส่งสัญญาณแล้ว
