-- Rows of a data folder that the last release with version 4 of the schema filled, and that was killed at work.
INSERT INTO "alert_channels" VALUES('alc_01m85cs9s5tf86q71ynvppmfm1','org_01m85crf6h20jbsk1m354q2qpt',NULL,'hook.example',X'1AA2EFEBB498BCB09177D20F56A9A055A0CF950D2E10D04B6EDA2A828B998796ABA88F53953829270FA87DEEC55D222F58E1','["failed","waiting","cap","delivery","backup","disk"]','now',0,1795477514021,NULL);
INSERT INTO "alert_channels" VALUES('alc_01m85cs9s68tjv876212pqma2x','org_01m85crf6h20jbsk1m354q2qpt','usr_01m85crf6h79xef026yj1hzyrx','',NULL,'["failed","waiting","cap","delivery","backup","disk"]','now',0,1795477514022,NULL);
INSERT INTO "alert_messages" VALUES(1,'alm_01m85cs9s78errj8yty7k0edmc','alc_01m85cs9s68tjv876212pqma2x','org_01m85crf6h20jbsk1m354q2qpt',1,'[{"event":"test","count":1,"firstAt":"2026-11-23T23:45:14.023Z","lastAt":"2026-11-23T23:45:14.023Z"}]','mailed',0,NULL,'',1795477514023,NULL);
INSERT INTO "api_keys" VALUES(1,'key_01m85crf6he26y5avfdgqm0ese','org_01m85crf6h20jbsk1m354q2qpt','usr_01m85crf6h79xef026yj1hzyrx','First key',X'845D0DCCA61BE6E27C9A85FE6F3A6573232F82AC78335948F3F3C08A563D485A','jm_live_the_',1795477486801,1795477440000,NULL,NULL,NULL);
INSERT INTO "api_keys" VALUES(2,'key_01m85cs9ry8w1f6fvk9ycv38bm','org_01m85crf6h20jbsk1m354q2qpt','usr_01m85crf6h79xef026yj1hzyrx','test',X'31016520858DAC46770073C8433076AB081DA4A4F68EC563735B814139E4D1A6','jm_live_tfnS',1795477514014,1795477500000,NULL,NULL,NULL);
INSERT INTO "api_keys" VALUES(3,'key_01m85cs9s1qys5a6emes3zpz7x','org_01m85crf6h20jbsk1m354q2qpt','usr_01m85crf6h79xef026yj1hzyrx','Client',X'876C0254975ECF9CAC6549465ECF4DD9919416651DEFF83EFEFECAA57D297AAE','jm_oauth_-D4',1795477514017,NULL,1795481114017,NULL,'ogr_01m85cs9s0rz247cc1hntkjawm');
INSERT INTO "approvals" VALUES(1,'apr_01m85crffx7wdn3at9xw4byazg','approval','org_01m85crf6h20jbsk1m354q2qpt',3,3,0,0,'pending','',NULL,NULL,NULL,1795477487101,NULL,NULL);
INSERT INTO "approvals" VALUES(2,'apr_01m85crfg6w875t3zfbj4vvav7','question','org_01m85crf6h20jbsk1m354q2qpt',4,4,0,0,'pending','',NULL,NULL,NULL,1795477487114,NULL,NULL);
INSERT INTO "audit_log" VALUES(1,'org_01m85crf6h20jbsk1m354q2qpt',NULL,NULL,'member.add','usr_01m85crf6h79xef026yj1hzyrx','{"role":"owner","user":"owner@localhost"}','',1795477486801);
INSERT INTO "audit_log" VALUES(2,'org_01m85crf6h20jbsk1m354q2qpt',NULL,NULL,'key.create','key_01m85crf6he26y5avfdgqm0ese','{"name":"First key","prefix":"jm_live_the_","user":"owner@localhost"}','',1795477486802);
INSERT INTO "audit_log" VALUES(3,'org_01m85crf6h20jbsk1m354q2qpt',NULL,NULL,'password.set','usr_01m85crf6h79xef026yj1hzyrx','{"user":"owner@localhost"}','',1795477486970);
INSERT INTO "audit_log" VALUES(4,'org_01m85crf6h20jbsk1m354q2qpt',NULL,NULL,'password.link','usr_01m85crf6h79xef026yj1hzyrx','{"user":"owner@localhost"}','',1795477486976);
INSERT INTO "audit_log" VALUES(5,'org_01m85crf6h20jbsk1m354q2qpt','usr_01m85crf6h79xef026yj1hzyrx','key_01m85crf6he26y5avfdgqm0ese','webhook.set','wrk_01m85crfcvb2qa4k39s48sgq4g','{"from":"","to":"http://127.0.0.1:43721/hook"}','127.0.0.1',1795477487017);
INSERT INTO "audit_log" VALUES(6,'org_01m85crf6h20jbsk1m354q2qpt','usr_01m85crf6h79xef026yj1hzyrx','key_01m85crf6he26y5avfdgqm0ese','secret.create','sec_01m85crfdeb3p156dzyy1dxwm8','{"name":"TOKEN"}','127.0.0.1',1795477487031);
INSERT INTO "audit_log" VALUES(7,'org_01m85crf6h20jbsk1m354q2qpt','usr_01m85crf6h79xef026yj1hzyrx','key_01m85crf6he26y5avfdgqm0ese','secret.create','sec_01m85crfegbkzmrwgwdhmsp15z','{"name":"OWN","workerId":"wrk_01m85crfcvb2qa4k39s48sgq4g"}','127.0.0.1',1795477487056);
INSERT INTO "audit_log" VALUES(8,'org_01m85crf6h20jbsk1m354q2qpt',NULL,NULL,'key.create','key_01m85cs9ry8w1f6fvk9ycv38bm','{"name":"test","prefix":"jm_live_tfnS","user":"owner@localhost"}','',1795477514014);
INSERT INTO "audit_log" VALUES(9,'org_01m85crf6h20jbsk1m354q2qpt','usr_01m85crf6h79xef026yj1hzyrx','key_01m85cs9ry8w1f6fvk9ycv38bm','oauth.grant','ogr_01m85cs9s0rz247cc1hntkjawm','{"name":"Client","redirect":"https://client.example"}','',1795477514016);
INSERT INTO "audit_log" VALUES(10,'org_01m85crf6h20jbsk1m354q2qpt','usr_01m85crf6h79xef026yj1hzyrx','key_01m85cs9ry8w1f6fvk9ycv38bm','provider.create','prv_01m85cs9s24cmac0hj7xwz59bj','{"baseUrl":"","kind":"openai","name":"mine"}','',1795477514018);
INSERT INTO "audit_log" VALUES(11,'org_01m85crf6h20jbsk1m354q2qpt','usr_01m85crf6h79xef026yj1hzyrx','key_01m85cs9ry8w1f6fvk9ycv38bm','organization.models','org_01m85crf6h20jbsk1m354q2qpt','{"from":"","to":"mine:m"}','',1795477514019);
INSERT INTO "audit_log" VALUES(12,'org_01m85crf6h20jbsk1m354q2qpt','usr_01m85crf6h79xef026yj1hzyrx','key_01m85cs9ry8w1f6fvk9ycv38bm','invitation.create','lnk_01m85cs9s424q7h3z2mszc6nsd','{"email":"new@acme.test","role":"admin"}','',1795477514020);
INSERT INTO "audit_log" VALUES(13,'org_01m85crf6h20jbsk1m354q2qpt','usr_01m85crf6h79xef026yj1hzyrx','key_01m85cs9ry8w1f6fvk9ycv38bm','alerts.add','alc_01m85cs9s5tf86q71ynvppmfm1','{"host":"hook.example","rhythm":"now","topics":["failed","waiting","cap","delivery","backup","disk"]}','',1795477514021);
INSERT INTO "audit_log" VALUES(14,'org_01m85crf6h20jbsk1m354q2qpt','usr_01m85crf6h79xef026yj1hzyrx','key_01m85cs9ry8w1f6fvk9ycv38bm','alerts.add','alc_01m85cs9s68tjv876212pqma2x','{"rhythm":"now","topics":["failed","waiting","cap","delivery","backup","disk"],"user":"owner@localhost"}','',1795477514022);
INSERT INTO "audit_log" VALUES(15,'org_01m85crf6h20jbsk1m354q2qpt','usr_01m85crf6h79xef026yj1hzyrx','key_01m85cs9ry8w1f6fvk9ycv38bm','alerts.test','alc_01m85cs9s68tjv876212pqma2x','{"rhythm":"now","topics":["failed","waiting","cap","delivery","backup","disk"],"user":"owner@localhost"}','',1795477514023);
INSERT INTO "call_images" VALUES(8,0,0,0,'a.png','image/png',3,'ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb');
INSERT INTO "deliveries" VALUES(1,NULL,1,1,'task.completed',1,NULL,1795477487075,'completed',1,996000,3);
INSERT INTO "deliveries" VALUES(2,'evt_01m85crfgr3j4yn1kywaqcha82',1,4,'task.waiting',1,NULL,1795477487128,'running',1,980000,0);
INSERT INTO "deliveries" VALUES(3,NULL,1,2,'task.completed',1,1795477492166,1795477487157,'completed',1,2950500,78);
INSERT INTO "deliveries" VALUES(4,NULL,1,5,'task.completed',1,NULL,1795477487180,'completed',1,2072500,3);
INSERT INTO "files" VALUES(1,'fil_01m85crfhfpnf63qgjcw27ygjs','wrk_01m85crfcvb2qa4k39s48sgq4g',2,2,'published','a.md','','text/markdown',3,'327f031b25e00b1a7cd9b0c18f05948b60f55d09f9b3d177d21083f83a3cb6df',1795477487151);
INSERT INTO "idempotency" VALUES(1,0,'1795477487.0611126',X'3B3295A5D549227F84E6AB255C6C3A963B56AFCE7D75D4C1F4636577734153F6','trn_01m85crfepg2eczjsdenj4h8s5',1795563887064);
INSERT INTO "idempotency" VALUES(1,0,'1795477487.0698144',X'B6BE191B2252C400A7A22497FA0A5179C97C26D74DA16F7167B45B7486DD556B','trn_01m85crfezdyv0aak5qz9my88c',1795563887071);
INSERT INTO "idempotency" VALUES(1,0,'1795477487.0782435',X'6FAF97212DFEA05432A3E5C0EE0AE8B07567E8C5255BB96A77EE57F664DDE9CA','trn_01m85crffqh2kaf7mh43swseve',1795563887095);
INSERT INTO "idempotency" VALUES(1,0,'1795477487.1014876',X'CD3AA3C22B5C519775207F9690E42451AD6D50B9874A50AC664089EF028138E0','trn_01m85crfg2ws8fvvzzn56zcnet',1795563887106);
INSERT INTO "idempotency" VALUES(1,0,'1795477487.109864',X'A2FDB6B4859A6A123AA86C0C489FD793912A94C2451D7E29388757947D7B5681','trn_01m85crfgbh5ccwxzj5hy7918h',1795563887115);
INSERT INTO "idempotency" VALUES(1,0,'1795477490.156268',X'3B85786E61453B8E59B32A7F11DE946106D7B3CDF75C65B1878699724D41E14C','trn_01m85crjfg1xny5ecmdcenadh9',1795563890160);
INSERT INTO "idempotency" VALUES(1,0,'1795477490.163741',X'52EB757B93A0BD965E2B70022C2D18AA514C1FA6546868976864DB4731639DA3','trn_01m85crjfmcvcaz4434a0h189p',1795563890164);
INSERT INTO "idempotency" VALUES(1,0,'1795477490.1664026',X'E0A5409711221B3D225426C63D3CB25C5CECBF44337E341284A4B2361E98A518','trn_01m85crjfrr0w89kea8mn177ej',1795563890168);
INSERT INTO "idempotency" VALUES(1,0,'1795477490.1723485',X'3B85786E61453B8E59B32A7F11DE946106D7B3CDF75C65B1878699724D41E14C','trn_01m85crjfzkhtyhhtt1r5x7w16',1795563890175);
INSERT INTO "idempotency" VALUES(1,0,'1795477490.1779807',X'52EB757B93A0BD965E2B70022C2D18AA514C1FA6546868976864DB4731639DA3','trn_01m85crjg3dfhr022r3rmmyt4q',1795563890179);
INSERT INTO "idempotency" VALUES(1,0,'1795477490.1819828',X'FDCE8C17A7A5D06B6F95CB0E4D7A8C33AAAB47F922E834B46DE31DA033CBB0CA','trn_01m85crjg7sxavs2z16a8eew8k',1795563890183);
INSERT INTO "idempotency" VALUES(1,0,X'1CC24394884DC81E3399A9D8157599EA',NULL,'trn_01m85crfgykh0w9v9ymrcb5wrs',1795478087134);
INSERT INTO "idempotency" VALUES(1,0,X'853A41ECDACE0B5D1ED0A11CA75DA50D',NULL,'wrk_01m85crfd0t7w81r0p8c6hjc8a',1795478087009);
INSERT INTO "idempotency" VALUES(1,0,X'C9261A850F15F1C95F7528CB89302CA5',NULL,'wrk_01m85crfd5sefw1nwmqdxkm4fd',1795478087013);
INSERT INTO "idempotency" VALUES(1,0,X'F73DE940C62D5BDDBDB4B3E746AC5543',NULL,'wrk_01m85crfcvb2qa4k39s48sgq4g',1795478087003);
INSERT INTO "links" VALUES('lnk_01m85crfbzxf3k5s5e3ez5zz3v',X'6AEA9E0760B0887BB8AA52B76CE1832E43132990CDFD488216D173F3E49C739E','welcome',NULL,NULL,NULL,'usr_01m85crf6h79xef026yj1hzyrx',NULL,1795477486975,1795563886975);
INSERT INTO "links" VALUES('lnk_01m85cs9s424q7h3z2mszc6nsd',X'E7FEB8997E528F5900C317BF8BF34FFFD340BF256859B60F05970AA934438486','invitation','org_01m85crf6h20jbsk1m354q2qpt','new@acme.test','admin',NULL,'usr_01m85crf6h79xef026yj1hzyrx',1795477514020,1796082314020);
INSERT INTO "mcp_logins" VALUES('docs',X'A3D229343EEBCCE444E1894C3533CC381AC70C59BF4623F19096ACB00C65F3BF86',1795477514019);
INSERT INTO "memberships" VALUES('org_01m85crf6h20jbsk1m354q2qpt','usr_01m85crf6h79xef026yj1hzyrx','owner',1795477486801,0);
INSERT INTO "model_providers" VALUES('prv_01m85cs9s24cmac0hj7xwz59bj','org_01m85crf6h20jbsk1m354q2qpt','mine','openai','',X'F0762EAFDC9C3E48CE5D4BF94A92A4D642A104424CB0466BD69570A8A8DF48B3F95AFD4D3E8207','',0,'[{"name":"m"}]','{"at":"0001-01-01T00:00:00Z"}','usr_01m85crf6h79xef026yj1hzyrx',1795477514018,1795477514018,1);
INSERT INTO "oauth_clients" VALUES('ocl_01m85crfhe3yhk7vjhn1fg4w3y','Client','["https://client.example/back"]',1795477487151,1795477487151);
INSERT INTO "oauth_clients" VALUES('ocl_01m85cs9s0rnbh05sefqgxn9n7','Client','["https://client.example/back"]',1795477514016,1795477514016);
INSERT INTO "oauth_grants" VALUES('ogr_01m85cs9s0rz247cc1hntkjawm','ocl_01m85cs9s0rnbh05sefqgxn9n7','org_01m85crf6h20jbsk1m354q2qpt','usr_01m85crf6h79xef026yj1hzyrx',NULL,'ZHH2nQBjfHMYbPvvSW_UtcP62scHWWWkh6yS3BeBzvA','https://client.example/back',X'74D7E440AE07CC74678927B105BBD8859924BE4F00808DEC9328189EACA73579',1795477514016,1800661514017,NULL);
INSERT INTO "organizations" VALUES(1,'org_01m85crf6h20jbsk1m354q2qpt','Default',NULL,1795477486801,'mine:m');
INSERT INTO "outbound_emails" VALUES(1,'msg_01m85cs9s7rk8jqstfz4ceqa0b','alert','org_01m85crf6h20jbsk1m354q2qpt',NULL,NULL,NULL,NULL,1,NULL,'owner@localhost','','queued',0,1795477514023,0,'',1795477514023,NULL,0,NULL,NULL);
INSERT INTO "runners" VALUES('run_01m85crf66kdzkdqk79qrd6mev',1795477546989);
INSERT INTO "secrets" VALUES('sec_01m85crfdeb3p156dzyy1dxwm8','org_01m85crf6h20jbsk1m354q2qpt',NULL,'TOKEN','[]',X'D80A2246B8412628489A9ABC7949443EFC970158D04FF57C8E83F3F1166E575F515CA67971BA5727D314','usr_01m85crf6h79xef026yj1hzyrx',1795477487022,1795477487022);
INSERT INTO "secrets" VALUES('sec_01m85crfegbkzmrwgwdhmsp15z','org_01m85crf6h20jbsk1m354q2qpt','wrk_01m85crfcvb2qa4k39s48sgq4g','OWN','[]',X'85ABB7CE1DCEC9837A7BF6454B7326DCFFA5573EE3F4D6DAD6952C7DA271EE1B254EC87FDBBAAA4942FCC165642A5062','usr_01m85crf6h79xef026yj1hzyrx',1795477487056,1795477487056);
INSERT INTO "spending" VALUES('org_01m85crf6h20jbsk1m354q2qpt',24322,9950007);
INSERT INTO "steps" VALUES(1,0,257,'','stop','','offline',2884,1888,26,0,0,0,996000,1795477487070,1795477487072,1);
INSERT INTO "steps" VALUES(2,0,257,'[{"type":"tool-call","callId":"call_1","toolName":"write_file","input":{"path":"a.md","content":"# A"}}]','tool-calls','','offline',2918,1913,11,0,0,0,978500,1795477487077,1795477487077,0);
INSERT INTO "steps" VALUES(2,1,257,'[{"type":"tool-call","callId":"call_2","toolName":"publish_file","input":{"path":"a.md"}}]','tool-calls','','offline',2956,1932,7,0,0,0,980000,1795477487128,1795477487128,0);
INSERT INTO "steps" VALUES(2,2,257,'','stop','','offline',3035,1980,1,0,0,0,992000,1795477487154,1795477487154,1);
INSERT INTO "steps" VALUES(3,0,257,'[{"type":"tool-call","callId":"call_1","toolName":"shell","input":{"command":"printf x \u003e b.txt"}}]','tool-calls','','offline',2906,1905,9,0,0,0,970500,1795477487101,1795477487101,0);
INSERT INTO "steps" VALUES(4,0,257,'[{"type":"tool-call","callId":"call_1","toolName":"ask_user","input":{"question":"Which?","choices":["a","b"]}}]','tool-calls','','offline',2912,1908,13,0,0,0,980000,1795477487109,1795477487110,0);
INSERT INTO "steps" VALUES(5,0,257,'[{"type":"tool-call","callId":"call_1","toolName":"run_worker","input":{"worker":"Other","input":"What?"}}]','tool-calls','','offline',2910,1906,11,0,0,0,975000,1795477487129,1795477487129,0);
INSERT INTO "steps" VALUES(5,1,513,'','stop','','offline',3007,1975,55,0,0,0,1097500,1795477487179,1795477487179,1);
INSERT INTO "steps" VALUES(6,0,257,'','stop','','offline',2876,1880,25,0,0,0,990000,1795477487137,1795477487138,1);
INSERT INTO "steps" VALUES(7,0,257,'','stop','','offline',2876,1873,27,0,0,0,990500,1795477487169,1795477487169,1);
INSERT INTO "steps" VALUES(8,0,0,'[{"type":"tool-call","callId":"call_0","toolName":"view_image","input":{"path":"a.png"}}]','tool-calls','','offline',0,3,2,0,0,0,7,1795477514025,1795477514025,0);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(1,'tsk_01m85crfepwb81fvkdzs7c67g5',1,1,1,'Hello','api',1,0,0,'completed',996000,3,1795477487062,1795477487075,NULL,0,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(2,'tsk_01m85crfez6d7mqzvasr7y7rs0',1,1,1,'tool write_file {"path":"a.md","content":"# A"}','api',1,0,0,'completed',2950500,78,1795477487071,1795477487157,NULL,0,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(3,'tsk_01m85crffqzmadz8fex1zbpyr6',1,3,1,'tool shell {"command":"printf x > b.txt"}','api',1,1,1,'',970500,0,1795477487095,NULL,NULL,0,'person');
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(4,'tsk_01m85crfg2bexewyb8d6sk7skn',1,1,1,'tool ask_user {"question":"Which?","choices":["a","b"]}','api',1,1,1,'',980000,0,1795477487106,NULL,NULL,0,'person');
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(5,'tsk_01m85crfgbqfak8wscr8z4b0f4',1,1,1,'tool run_worker {"worker":"Other","input":"What?"}','api',1,0,0,'completed',2072500,3,1795477487115,1795477487179,NULL,0,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(6,'tsk_01m85crfgywg7j297bth63mskk',1,4,1,'made by a task: plain','api',1,0,0,'completed',990000,0,1795477487134,1795477487138,NULL,0,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(7,'tsk_01m85crfhkc3cqbncafs0xtd00',1,2,1,'What?','api',1,0,0,'completed',990500,2,1795477487155,1795477487169,NULL,0,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(8,'tsk_01m85crjfgsr0vxsj8t3gz33gx',1,1,1,'wait 1h','api',1,1,1,'',7,0,1795477490160,NULL,NULL,0,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(9,'tsk_01m85crjfm1z8yrbkrffq0jtb8',1,2,1,'wait 1h','api',1,1,1,'',0,0,1795477490164,NULL,NULL,0,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(10,'tsk_01m85crjfr1psgfaej8s4zdzgx',1,3,1,'wait 1h','api',1,1,1,'',0,0,1795477490168,NULL,NULL,0,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(11,'tsk_01m85crjfz57ja1w56mdsbm81n',1,1,1,'wait 1h','api',1,1,1,'',0,0,1795477490175,NULL,NULL,0,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(12,'tsk_01m85crjg3nwbskeap15kdyffz',1,2,1,'wait 1h','api',1,1,0,'',0,0,1795477490179,NULL,NULL,0,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(13,'tsk_01m85crjg796ee91g5c1z27rat',1,1,1,'queued ```offline','api',1,1,0,'',0,0,1795477490183,NULL,NULL,0,NULL);
INSERT INTO "tool_calls" VALUES(2,0,0,'completed','{"path":"a.md","size":3}',0,1795477487099,1795477487111);
INSERT INTO "tool_calls" VALUES(2,1,0,'completed','{"path":"a.md","mediaType":"text/markdown","size":3,"url":"http://127.0.0.1:48211/api/workers/wrk_01m85crfcvb2qa4k39s48sgq4g/files/a.md?v=327f031b25e0"}',0,1795477487136,1795477487151);
INSERT INTO "tool_calls" VALUES(5,0,0,'completed','{"worker":"Other","task":"tsk_01m85crfhkc3cqbncafs0xtd00","status":"completed","output":"This is the offline model: it follows fixed rules and can only quote.\n\nInstructions: Answer.\n\nInput: What?","credits":0.09905}
',0,1795477487176,1795477487178);
INSERT INTO "tool_calls" VALUES(8,0,0,'completed','1',0,1795477514025,1795477514025);
INSERT INTO "turns" VALUES(1,'trn_01m85crfepg2eczjsdenj4h8s5',1,0,1,1,1,1,1,0,'api','Hello','standard','completed',1,NULL,NULL,1,0,0,'This is the offline model: it follows fixed rules and can only quote.

Instructions: Help.

Input: Hello',NULL,NULL,NULL,NULL,NULL,NULL,'offline',1,1888,26,0,0,0,996000,0,3,NULL,NULL,1795477487062,1795477487062,1795477487075,NULL,'Monday, 2026-11-23, 23:44"owner", "owner@localhost"empty',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(2,'trn_01m85crfezdyv0aak5qz9my88c',2,0,1,1,1,1,1,0,'api','```offline
tool write_file {"path":"a.md","content":"# A"}
tool publish_file {"path":"a.md"}
say done
```','standard','completed',1,NULL,NULL,1,0,0,'done',NULL,NULL,NULL,NULL,NULL,NULL,'offline',3,5825,19,0,0,0,2950500,0,78,NULL,NULL,1795477487071,1795477487071,1795477487157,NULL,'Monday, 2026-11-23, 23:44"owner", "owner@localhost"empty',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(3,'trn_01m85crffqh2kaf7mh43swseve',3,0,1,3,1,1,1,0,'api','```offline
tool shell {"command":"printf x > b.txt"}
say {{last}}
```','standard','running',1,NULL,1796082287103,1,0,0,'',NULL,NULL,NULL,NULL,NULL,NULL,'offline',1,1905,9,0,0,0,970500,0,0,NULL,NULL,1795477487095,1795477487095,NULL,NULL,'Monday, 2026-11-23, 23:44"owner", "owner@localhost"empty','person',NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(4,'trn_01m85crfg2ws8fvvzzn56zcnet',4,0,1,1,1,1,1,0,'api','```offline
tool ask_user {"question":"Which?","choices":["a","b"]}
say {{last}}
```','standard','running',1,NULL,1796082287128,1,0,0,'',NULL,NULL,NULL,NULL,NULL,NULL,'offline',1,1908,13,0,0,0,980000,0,0,NULL,NULL,1795477487106,1795477487106,NULL,NULL,'Monday, 2026-11-23, 23:44"owner", "owner@localhost"empty','person',NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(5,'trn_01m85crfgbh5ccwxzj5hy7918h',5,0,1,1,1,1,1,0,'api','```offline
tool run_worker {"worker":"Other","input":"What?"}
say {{last}}
```','standard','completed',1,NULL,NULL,2,0,0,'{"worker":"Other","task":"tsk_01m85crfhkc3cqbncafs0xtd00","status":"completed","output":"This is the offline model: it follows fixed rules and can only quote.\n\nInstructions: Answer.\n\nInput: What?","credits":0.09905}
',NULL,NULL,NULL,NULL,NULL,NULL,'offline',2,3881,66,0,0,0,2072500,0,3,NULL,NULL,1795477487115,1795477487115,1795477487179,NULL,'Monday, 2026-11-23, 23:44"owner", "owner@localhost""a.md"',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(6,'trn_01m85crfgykh0w9v9ymrcb5wrs',6,0,1,4,1,1,1,0,'api','made by a task: plain','standard','completed',1,NULL,NULL,1,0,0,'This is the offline model: it follows fixed rules and can only quote.

Input: made by a task: plain',NULL,NULL,NULL,NULL,NULL,NULL,'offline',1,1880,25,0,0,0,990000,0,0,NULL,NULL,1795477487134,1795477487134,1795477487138,NULL,'Monday, 2026-11-23, 23:44"owner", "owner@localhost"empty',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(7,'trn_01m85crfhkk3ax6cgav5655f82',7,0,1,2,1,1,1,0,'api','What?','standard','completed',1,NULL,NULL,1,0,0,'This is the offline model: it follows fixed rules and can only quote.

Instructions: Answer.

Input: What?',NULL,NULL,NULL,NULL,NULL,NULL,'offline',1,1873,27,0,0,0,990500,0,2,NULL,NULL,1795477487155,1795477487162,1795477487169,NULL,'Monday, 2026-11-23, 23:44, UTC"Scribe""owner", "owner@localhost"empty',NULL,NULL,NULL,NULL,0,5,0,0,5,1);
INSERT INTO "turns" VALUES(8,'trn_01m85crjfg1xny5ecmdcenadh9',8,0,1,1,1,1,1,0,'api','```offline
wait 1h
say late
```','standard','running',1,'run_01m85crf66kdzkdqk79qrd6mev',NULL,1,0,0,'',NULL,NULL,NULL,NULL,NULL,NULL,'offline',1,3,2,0,0,0,7,0,0,NULL,NULL,1795477490160,1795477490160,NULL,NULL,'Monday, 2026-11-23, 23:44"owner", "owner@localhost""a.md"',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(9,'trn_01m85crjfmcvcaz4434a0h189p',9,0,1,2,1,1,1,0,'api','```offline
wait 1h
say late
```','standard','running',1,'run_01m85crf66kdzkdqk79qrd6mev',NULL,1,0,0,'',NULL,NULL,NULL,NULL,NULL,NULL,'',0,0,0,0,0,0,0,0,0,NULL,NULL,1795477490164,1795477490164,NULL,NULL,'Monday, 2026-11-23, 23:44"owner", "owner@localhost"empty',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(10,'trn_01m85crjfrr0w89kea8mn177ej',10,0,1,3,1,1,1,0,'api','```offline
wait 1h
say late
```','standard','running',1,'run_01m85crf66kdzkdqk79qrd6mev',NULL,1,0,0,'',NULL,NULL,NULL,NULL,NULL,NULL,'',0,0,0,0,0,0,0,0,0,NULL,NULL,1795477490168,1795477490168,NULL,NULL,'Monday, 2026-11-23, 23:44"owner", "owner@localhost"empty',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(11,'trn_01m85crjfzkhtyhhtt1r5x7w16',11,0,1,1,1,1,1,0,'api','```offline
wait 1h
say late
```','standard','running',1,'run_01m85crf66kdzkdqk79qrd6mev',NULL,1,0,0,'',NULL,NULL,NULL,NULL,NULL,NULL,'',0,0,0,0,0,0,0,0,0,NULL,NULL,1795477490175,1795477490175,NULL,NULL,'Monday, 2026-11-23, 23:44"owner", "owner@localhost""a.md"',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(12,'trn_01m85crjg3dfhr022r3rmmyt4q',12,0,1,2,1,1,1,0,'api','```offline
wait 1h
say late
```','standard','pending',1,NULL,NULL,0,0,0,'',NULL,NULL,NULL,NULL,NULL,NULL,'',0,0,0,0,0,0,0,0,0,NULL,NULL,1795477490179,NULL,NULL,NULL,'Monday, 2026-11-23, 23:44"owner", "owner@localhost"empty',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(13,'trn_01m85crjg7sxavs2z16a8eew8k',13,0,1,1,1,1,1,0,'api','queued ```offline
wait 1h
say late
```','standard','pending',1,NULL,NULL,0,0,0,'',NULL,NULL,NULL,NULL,NULL,NULL,'',0,0,0,0,0,0,0,0,0,NULL,NULL,1795477490183,NULL,NULL,NULL,'Monday, 2026-11-23, 23:44"owner", "owner@localhost""a.md"',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "usage" VALUES('org_01m85crf6h20jbsk1m354q2qpt',20780,'wrk_01m85crfcvb2qa4k39s48sgq4g','key_01m85crf6he26y5avfdgqm0ese','api',3,0,8,13505,126,6999007,84);
INSERT INTO "usage" VALUES('org_01m85crf6h20jbsk1m354q2qpt',20780,'wrk_01m85crfd0t7w81r0p8c6hjc8a','key_01m85crf6he26y5avfdgqm0ese','api',1,0,1,1873,27,990500,2);
INSERT INTO "usage" VALUES('org_01m85crf6h20jbsk1m354q2qpt',20780,'wrk_01m85crfd5sefw1nwmqdxkm4fd','key_01m85crf6he26y5avfdgqm0ese','api',0,0,1,1905,9,970500,0);
INSERT INTO "usage" VALUES('org_01m85crf6h20jbsk1m354q2qpt',20780,'wrk_01m85crfgy84e6prjgqg7d70q4','key_01m85crf6he26y5avfdgqm0ese','api',1,0,1,1880,25,990000,0);
INSERT INTO "users" VALUES(1,'usr_01m85crf6h79xef026yj1hzyrx','owner@localhost','owner','$argon2id$v=19$m=19456,t=2,p=1$Pb2Py3NsyOf6yNAquaGiRQ$f7e0ANkZ6sTdjSEZwnKt/awl0GD8crNET77F9w3J8CA',1795477486801,'','',1);
INSERT INTO "webhook_exchanges" VALUES(1,'POST /hook HTTP/1.1
Host: 127.0.0.1:43721
Content-Type: application/json
User-Agent: Journeyman/0.1.0
Webhook-Id: evt_01m85crfepg2eczjsdenj4h8s5
Webhook-Signature: v1,dDyhzrMLBjowF4+eZavcmfmiAJu/H5WaPqqQrbCWCAY=
Webhook-Timestamp: 1795477487
X-Service-Token: (hidden)

{"id":"evt_01m85crfepg2eczjsdenj4h8s5","type":"task.completed","createdAt":"2026-11-23T23:44:47.075Z","task":{"id":"tsk_01m85crfepwb81fvkdzs7c67g5","completedAt":"2026-11-23T23:44:47.075Z","createdAt":"2026-11-23T23:44:47.062Z","createdByUserId":"usr_01m85crf6h79xef026yj1hzyrx","organizationId":"org_01m85crf6h20jbsk1m354q2qpt","status":"completed","title":"Hello","totals":{"credits":0.0996,"durationMs":3,"turnCount":1},"triggeredBy":"api","url":"http://127.0.0.1:48211/tasks/tsk_01m85crfepwb81fvkdzs7c67g5","waitingFor":null,"workerId":"wrk_01m85crfcvb2qa4k39s48sgq4g"},"turn":{"id":"trn_01m85crfepg2eczjsdenj4h8s5","taskId":"tsk_01m85crfepwb81fvkdzs7c67g5","seq":0,"role":"assistant","status":"completed","input":"Hello","outputText":"This is the offline model: it follows fixed rules and can only quote.\n\nInstructions: Help.\n\nInput: Hello","inputTokens":1888,"outputTokens":26,"credits":0.0996,"durationMs":3,"startedAt":"2026-11-23T23:44:47.062Z","completedAt":"2026-11-23T23:44:47.075Z","structuredOutput":null,"waitingFor":null,"workerVersion":1},"worker":{"id":"wrk_01m85crfcvb2qa4k39s48sgq4g","created_at":1795477487,"error":null,"incomplete_details":null,"files":[],"messages":[{"id":"msg_01m85crfepptrxr5twch90mshb","role":"user","metadata":{"taskId":"tsk_01m85crfepwb81fvkdzs7c67g5","turnId":"trn_01m85crfepg2eczjsdenj4h8s5","seq":0,"createdAt":"2026-11-23T23:44:47.062Z"},"parts":[{"type":"text","text":"Hello"}]},{"id":"msg_01m85crfepn0tvkt0b30hynsr0","role":"assistant","metadata":{"taskId":"tsk_01m85crfepwb81fvkdzs7c67g5","turnId":"trn_01m85crfepg2eczjsdenj4h8s5","seq":0,"createdAt":"2026-11-23T23:44:47.062Z","usage":{"cacheReadTokens":0,"cacheWriteTokens":0,"costUsd":0.000996,"inputTokens":1888,"outputTokens":26,"reasoningTokens":0,"steps":1,"totalTokens":1914,"credits":0.0996,"durationMs":3}},"parts":[{"type":"step-start"},{"type":"text","text":"This is the offline model: it follows fixed rules and can only quote.\n\nInstructions: Help.\n\nInput: Hello","state":"done"}]}],"metadata":{"taskId":"tsk_01m85crfepwb81fvkdzs7c67g5","turnId":"trn_01m85crfepg2eczjsdenj4h8s5","turnStatus":"completed","taskStatus":"completed","triggeredBy":"api","budget":"standard","model":"offline"},"object":"worker","output":[{"id":"msg_01m85crfepn0tvkt0b30hynsr0","content":[{"text":"This is the offline model: it follows fixed rules and can only quote.\n\nInstructions: Help.\n\nInput: Hello","type":"output_text"}],"role":"assistant","status":"completed","type":"message"}],"output_text":"This is the offline model: it follows fixed rules and can only quote.\n\nInstructions: Help.\n\nInput: Hello","running":false,"sources":[],"status":"completed","costs":{"internalCostUsd":0,"modelCostUsd":0.000996,"sandboxCostUsd":0,"toolCostUsd":0},"usage":{"cacheReadTokens":0,"cacheWriteTokens":0,"costUsd":0.000996,"inputTokens":1888,"outputTokens":26,"reasoningTokens":0,"steps":1,"totalTokens":1914,"credits":0.0996,"durationMs":3},"structured_output":null,"url":"http://127.0.0.1:48211/workers/wrk_01m85crfcvb2qa4k39s48sgq4g","waitingFor":null}}','HTTP/1.0 200 OK
Content-Length: 2
Date: Mon, 23 Nov 2026 23:44:47 GMT
Server: BaseHTTP/0.6 Python/3.11.7

ok');
INSERT INTO "webhook_exchanges" VALUES(2,'POST /hook HTTP/1.1
Host: 127.0.0.1:43721
Content-Type: application/json
User-Agent: Journeyman/0.1.0
Webhook-Id: evt_01m85crfgr3j4yn1kywaqcha82
Webhook-Signature: v1,b9S/niWJ1TcB5xEL0gY0Nt2NssRYd/pBM8D4dVmRb5c=
Webhook-Timestamp: 1795477487
X-Service-Token: (hidden)

{"id":"evt_01m85crfgr3j4yn1kywaqcha82","type":"task.waiting","createdAt":"2026-11-23T23:44:47.128Z","waiting":{"approvals":[{"id":"apr_01m85crfg6w875t3zfbj4vvav7","kind":"question","question":"Which?","choices":["a","b"],"toolCallId":"call_1","toolName":"ask_user","input":{"question":"Which?","choices":["a","b"]}}]},"task":{"id":"tsk_01m85crfg2bexewyb8d6sk7skn","completedAt":null,"createdAt":"2026-11-23T23:44:47.106Z","createdByUserId":"usr_01m85crf6h79xef026yj1hzyrx","organizationId":"org_01m85crf6h20jbsk1m354q2qpt","status":"running","title":"tool ask_user {\"question\":\"Which?\",\"choices\":[\"a\",\"b\"]}","totals":{"credits":0.098,"durationMs":0,"turnCount":1},"triggeredBy":"api","url":"http://127.0.0.1:48211/tasks/tsk_01m85crfg2bexewyb8d6sk7skn","waitingFor":{"for":"person","reason":null,"retryAt":null},"workerId":"wrk_01m85crfcvb2qa4k39s48sgq4g"},"turn":{"id":"trn_01m85crfg2ws8fvvzzn56zcnet","taskId":"tsk_01m85crfg2bexewyb8d6sk7skn","seq":0,"role":"assistant","status":"running","input":"```offline\ntool ask_user {\"question\":\"Which?\",\"choices\":[\"a\",\"b\"]}\nsay {{last}}\n```","outputText":"","inputTokens":1908,"outputTokens":13,"credits":0.098,"durationMs":0,"startedAt":"2026-11-23T23:44:47.106Z","completedAt":null,"structuredOutput":null,"waitingFor":{"for":"person","reason":null,"retryAt":null},"workerVersion":1},"worker":{"id":"wrk_01m85crfcvb2qa4k39s48sgq4g","created_at":1795477487,"error":null,"incomplete_details":null,"files":[],"messages":[{"id":"msg_01m85crfg26bqab3fbdn83p0we","role":"user","metadata":{"taskId":"tsk_01m85crfg2bexewyb8d6sk7skn","turnId":"trn_01m85crfg2ws8fvvzzn56zcnet","seq":0,"createdAt":"2026-11-23T23:44:47.106Z"},"parts":[{"type":"text","text":"```offline\ntool ask_user {\"question\":\"Which?\",\"choices\":[\"a\",\"b\"]}\nsay {{last}}\n```"}]},{"id":"msg_01m85crfg212hy445796t8k3rz","role":"assistant","metadata":{"taskId":"tsk_01m85crfg2bexewyb8d6sk7skn","turnId":"trn_01m85crfg2ws8fvvzzn56zcnet","seq":0,"createdAt":"2026-11-23T23:44:47.106Z"},"parts":[{"type":"step-start"},{"type":"dynamic-tool","state":"input-available","toolName":"ask_user","toolCallId":"call_1","input":{"question":"Which?","choices":["a","b"]}}]}],"metadata":{"taskId":"tsk_01m85crfg2bexewyb8d6sk7skn","turnId":"trn_01m85crfg2ws8fvvzzn56zcnet","turnStatus":"running","taskStatus":"running","triggeredBy":"api","budget":"standard","model":"offline","pendingApprovals":[{"id":"apr_01m85crfg6w875t3zfbj4vvav7","kind":"question","question":"Which?","choices":["a","b"],"toolCallId":"call_1","toolName":"ask_user","input":{"question":"Which?","choices":["a","b"]}}]},"object":"worker","output":[],"output_text":"","running":true,"sources":[],"status":"running","costs":{"internalCostUsd":0,"modelCostUsd":0.00098,"sandboxCostUsd":0,"toolCostUsd":0},"usage":{"cacheReadTokens":0,"cacheWriteTokens":0,"costUsd":0.00098,"inputTokens":1908,"outputTokens":13,"reasoningTokens":0,"steps":1,"totalTokens":1921,"credits":0.098,"durationMs":0},"structured_output":null,"url":"http://127.0.0.1:48211/workers/wrk_01m85crfcvb2qa4k39s48sgq4g","waitingFor":{"for":"person","reason":null,"retryAt":null}}}','HTTP/1.0 200 OK
Content-Length: 2
Date: Mon, 23 Nov 2026 23:44:47 GMT
Server: BaseHTTP/0.6 Python/3.11.7

ok');
INSERT INTO "webhook_exchanges" VALUES(3,'POST /hook HTTP/1.1
Host: 127.0.0.1:43721
Content-Type: application/json
User-Agent: Journeyman/0.1.0
Webhook-Id: evt_01m85crfezdyv0aak5qz9my88c
Webhook-Signature: v1,F5jToiLJ10kR9+2B9G/qiGT5T5JB36wz40QMQEKwz64=
Webhook-Timestamp: 1795477487
X-Service-Token: (hidden)

{"id":"evt_01m85crfezdyv0aak5qz9my88c","type":"task.completed","createdAt":"2026-11-23T23:44:47.157Z","task":{"id":"tsk_01m85crfez6d7mqzvasr7y7rs0","completedAt":"2026-11-23T23:44:47.157Z","createdAt":"2026-11-23T23:44:47.071Z","createdByUserId":"usr_01m85crf6h79xef026yj1hzyrx","organizationId":"org_01m85crf6h20jbsk1m354q2qpt","status":"completed","title":"tool write_file {\"path\":\"a.md\",\"content\":\"# A\"}","totals":{"credits":0.29505,"durationMs":78,"turnCount":1},"triggeredBy":"api","url":"http://127.0.0.1:48211/tasks/tsk_01m85crfez6d7mqzvasr7y7rs0","waitingFor":null,"workerId":"wrk_01m85crfcvb2qa4k39s48sgq4g"},"turn":{"id":"trn_01m85crfezdyv0aak5qz9my88c","taskId":"tsk_01m85crfez6d7mqzvasr7y7rs0","seq":0,"role":"assistant","status":"completed","input":"```offline\ntool write_file {\"path\":\"a.md\",\"content\":\"# A\"}\ntool publish_file {\"path\":\"a.md\"}\nsay done\n```","outputText":"done","inputTokens":5825,"outputTokens":19,"credits":0.29505,"durationMs":78,"startedAt":"2026-11-23T23:44:47.071Z","completedAt":"2026-11-23T23:44:47.157Z","structuredOutput":null,"waitingFor":null,"workerVersion":1},"worker":{"id":"wrk_01m85crfcvb2qa4k39s48sgq4g","created_at":1795477487,"error":null,"incomplete_details":null,"files":[{"filename":"a.md","mediaType":"text/markdown","url":"http://127.0.0.1:48211/api/workers/wrk_01m85crfcvb2qa4k39s48sgq4g/files/a.md?v=327f031b25e0","size":3}],"messages":[{"id":"msg_01m85crfezh65xd4s80n36zytn","role":"user","metadata":{"taskId":"tsk_01m85crfez6d7mqzvasr7y7rs0","turnId":"trn_01m85crfezdyv0aak5qz9my88c","seq":0,"createdAt":"2026-11-23T23:44:47.071Z"},"parts":[{"type":"text","text":"```offline\ntool write_file {\"path\":\"a.md\",\"content\":\"# A\"}\ntool publish_file {\"path\":\"a.md\"}\nsay done\n```"}]},{"id":"msg_01m85crfezq1h45c40pnn659ra","role":"assistant","metadata":{"taskId":"tsk_01m85crfez6d7mqzvasr7y7rs0","turnId":"trn_01m85crfezdyv0aak5qz9my88c","seq":0,"createdAt":"2026-11-23T23:44:47.071Z","usage":{"cacheReadTokens":0,"cacheWriteTokens":0,"costUsd":0.0029505,"inputTokens":5825,"outputTokens":19,"reasoningTokens":0,"steps":3,"totalTokens":5844,"credits":0.29505,"durationMs":78}},"parts":[{"type":"step-start"},{"type":"dynamic-tool","state":"output-available","toolName":"write_file","toolCallId":"call_1","input":{"path":"a.md","content":"# A"},"output":{"path":"a.md","size":3}},{"type":"step-start"},{"type":"dynamic-tool","state":"output-available","toolName":"publish_file","toolCallId":"call_2","input":{"path":"a.md"},"output":{"path":"a.md","mediaType":"text/markdown","size":3,"url":"http://127.0.0.1:48211/api/workers/wrk_01m85crfcvb2qa4k39s48sgq4g/files/a.md?v=327f031b25e0"}},{"type":"step-start"},{"type":"text","text":"done","state":"done"},{"type":"file","url":"http://127.0.0.1:48211/api/workers/wrk_01m85crfcvb2qa4k39s48sgq4g/files/a.md?v=327f031b25e0","mediaType":"text/markdown"}]}],"metadata":{"taskId":"tsk_01m85crfez6d7mqzvasr7y7rs0","turnId":"trn_01m85crfezdyv0aak5qz9my88c","turnStatus":"completed","taskStatus":"completed","triggeredBy":"api","budget":"standard","model":"offline"},"object":"worker","output":[{"id":"msg_01m85crfezq1h45c40pnn659ra","content":[{"text":"done","type":"output_text"}],"role":"assistant","status":"completed","type":"message"}],"output_text":"done","running":false,"sources":[],"status":"completed","costs":{"internalCostUsd":0,"modelCostUsd":0.0029505,"sandboxCostUsd":0,"toolCostUsd":0},"usage":{"cacheReadTokens":0,"cacheWriteTokens":0,"costUsd":0.0029505,"inputTokens":5825,"outputTokens":19,"reasoningTokens":0,"steps":3,"totalTokens":5844,"credits":0.29505,"durationMs":78},"structured_output":null,"url":"http://127.0.0.1:48211/workers/wrk_01m85crfcvb2qa4k39s48sgq4g","waitingFor":null}}','HTTP/1.0 500 Internal Server Error
Content-Length: 2
Date: Mon, 23 Nov 2026 23:44:47 GMT
Server: BaseHTTP/0.6 Python/3.11.7

ok');
INSERT INTO "webhook_exchanges" VALUES(4,'POST /hook HTTP/1.1
Host: 127.0.0.1:43721
Content-Type: application/json
User-Agent: Journeyman/0.1.0
Webhook-Id: evt_01m85crfgbh5ccwxzj5hy7918h
Webhook-Signature: v1,ejXntgQU+dXS9VMiRJQ8w6TQYltuZ6n+ekaa8I3XXd8=
Webhook-Timestamp: 1795477487
X-Service-Token: (hidden)

{"id":"evt_01m85crfgbh5ccwxzj5hy7918h","type":"task.completed","createdAt":"2026-11-23T23:44:47.180Z","task":{"id":"tsk_01m85crfgbqfak8wscr8z4b0f4","completedAt":"2026-11-23T23:44:47.179Z","createdAt":"2026-11-23T23:44:47.115Z","createdByUserId":"usr_01m85crf6h79xef026yj1hzyrx","organizationId":"org_01m85crf6h20jbsk1m354q2qpt","status":"completed","title":"tool run_worker {\"worker\":\"Other\",\"input\":\"What?\"}","totals":{"credits":0.20725,"durationMs":3,"turnCount":1},"triggeredBy":"api","url":"http://127.0.0.1:48211/tasks/tsk_01m85crfgbqfak8wscr8z4b0f4","waitingFor":null,"workerId":"wrk_01m85crfcvb2qa4k39s48sgq4g"},"turn":{"id":"trn_01m85crfgbh5ccwxzj5hy7918h","taskId":"tsk_01m85crfgbqfak8wscr8z4b0f4","seq":0,"role":"assistant","status":"completed","input":"```offline\ntool run_worker {\"worker\":\"Other\",\"input\":\"What?\"}\nsay {{last}}\n```","outputText":"{\"worker\":\"Other\",\"task\":\"tsk_01m85crfhkc3cqbncafs0xtd00\",\"status\":\"completed\",\"output\":\"This is the offline model: it follows fixed rules and can only quote.\\n\\nInstructions: Answer.\\n\\nInput: What?\",\"credits\":0.09905}\n","inputTokens":3881,"outputTokens":66,"credits":0.20725,"durationMs":3,"startedAt":"2026-11-23T23:44:47.115Z","completedAt":"2026-11-23T23:44:47.179Z","structuredOutput":null,"waitingFor":null,"workerVersion":1},"worker":{"id":"wrk_01m85crfcvb2qa4k39s48sgq4g","created_at":1795477487,"error":null,"incomplete_details":null,"files":[],"messages":[{"id":"msg_01m85crfgbannsnf706k90z0yr","role":"user","metadata":{"taskId":"tsk_01m85crfgbqfak8wscr8z4b0f4","turnId":"trn_01m85crfgbh5ccwxzj5hy7918h","seq":0,"createdAt":"2026-11-23T23:44:47.115Z"},"parts":[{"type":"text","text":"```offline\ntool run_worker {\"worker\":\"Other\",\"input\":\"What?\"}\nsay {{last}}\n```"}]},{"id":"msg_01m85crfgbvmr3amenm60xs0vz","role":"assistant","metadata":{"taskId":"tsk_01m85crfgbqfak8wscr8z4b0f4","turnId":"trn_01m85crfgbh5ccwxzj5hy7918h","seq":0,"createdAt":"2026-11-23T23:44:47.115Z","usage":{"cacheReadTokens":0,"cacheWriteTokens":0,"costUsd":0.0020725,"inputTokens":3881,"outputTokens":66,"reasoningTokens":0,"steps":2,"totalTokens":3947,"credits":0.20725,"durationMs":3}},"parts":[{"type":"step-start"},{"type":"dynamic-tool","state":"output-available","toolName":"run_worker","toolCallId":"call_1","input":{"worker":"Other","input":"What?"},"output":{"worker":"Other","task":"tsk_01m85crfhkc3cqbncafs0xtd00","status":"completed","output":"This is the offline model: it follows fixed rules and can only quote.\n\nInstructions: Answer.\n\nInput: What?","credits":0.09905}},{"type":"step-start"},{"type":"text","text":"{\"worker\":\"Other\",\"task\":\"tsk_01m85crfhkc3cqbncafs0xtd00\",\"status\":\"completed\",\"output\":\"This is the offline model: it follows fixed rules and can only quote.\\n\\nInstructions: Answer.\\n\\nInput: What?\",\"credits\":0.09905}\n","state":"done"}]}],"metadata":{"taskId":"tsk_01m85crfgbqfak8wscr8z4b0f4","turnId":"trn_01m85crfgbh5ccwxzj5hy7918h","turnStatus":"completed","taskStatus":"completed","triggeredBy":"api","budget":"standard","model":"offline"},"object":"worker","output":[{"id":"msg_01m85crfgbvmr3amenm60xs0vz","content":[{"text":"{\"worker\":\"Other\",\"task\":\"tsk_01m85crfhkc3cqbncafs0xtd00\",\"status\":\"completed\",\"output\":\"This is the offline model: it follows fixed rules and can only quote.\\n\\nInstructions: Answer.\\n\\nInput: What?\",\"credits\":0.09905}\n","type":"output_text"}],"role":"assistant","status":"completed","type":"message"}],"output_text":"{\"worker\":\"Other\",\"task\":\"tsk_01m85crfhkc3cqbncafs0xtd00\",\"status\":\"completed\",\"output\":\"This is the offline model: it follows fixed rules and can only quote.\\n\\nInstructions: Answer.\\n\\nInput: What?\",\"credits\":0.09905}\n","running":false,"sources":[],"status":"completed","costs":{"internalCostUsd":0,"modelCostUsd":0.0020725,"sandboxCostUsd":0,"toolCostUsd":0},"usage":{"cacheReadTokens":0,"cacheWriteTokens":0,"costUsd":0.0020725,"inputTokens":3881,"outputTokens":66,"reasoningTokens":0,"steps":2,"totalTokens":3947,"credits":0.20725,"durationMs":3},"structured_output":null,"url":"http://127.0.0.1:48211/workers/wrk_01m85crfcvb2qa4k39s48sgq4g","waitingFor":null}}','HTTP/1.0 200 OK
Content-Length: 2
Date: Mon, 23 Nov 2026 23:44:47 GMT
Server: BaseHTTP/0.6 Python/3.11.7

ok');
INSERT INTO "webhook_executions" VALUES(1,'whe_01m85crfg1krd7yf1gp95j602s',1,1,1,'http://127.0.0.1:43721/hook','success',200,NULL,5,1795477487097);
INSERT INTO "webhook_executions" VALUES(2,'whe_01m85crfhn85q6ae21kg7145pg',1,2,2,'http://127.0.0.1:43721/hook','success',200,NULL,19,1795477487136);
INSERT INTO "webhook_executions" VALUES(3,'whe_01m85crfhzq91dtrn2a1dsdjzp',1,3,3,'http://127.0.0.1:43721/hook','error',500,'the endpoint answered 500 Internal Server Error',2,1795477487161);
INSERT INTO "webhook_executions" VALUES(4,'whe_01m85crfjh1kqte62fyfbzsj88',1,4,4,'http://127.0.0.1:43721/hook','success',200,NULL,3,1795477487182);
INSERT INTO "webhooks" VALUES('wrk_01m85crfcvb2qa4k39s48sgq4g','http://127.0.0.1:43721/hook','whk_vzFfe8sAYD31fLGchZgfoJ6lujTw_A4Bzz9e7h0LclU','whsec_pecbxsuwxkg7plc6zxNtu0wI517UPmWqOR+i7tLtnIo=',1795477487017,1795477487017);
INSERT INTO "worker_versions" VALUES('wrk_01m85crfcvb2qa4k39s48sgq4g',1,'Help.',NULL,NULL,'["shell"]','[]',1795477487003,NULL,NULL,'usr_01m85crf6h79xef026yj1hzyrx',NULL);
INSERT INTO "worker_versions" VALUES('wrk_01m85crfd0t7w81r0p8c6hjc8a',1,'Answer.',NULL,NULL,'[]','[]',1795477487009,NULL,NULL,'usr_01m85crf6h79xef026yj1hzyrx',NULL);
INSERT INTO "worker_versions" VALUES('wrk_01m85crfd5sefw1nwmqdxkm4fd',1,'Careful.',NULL,NULL,'["shell"]','[]',1795477487013,NULL,NULL,'usr_01m85crf6h79xef026yj1hzyrx',NULL);
INSERT INTO "worker_versions" VALUES('wrk_01m85crfgy84e6prjgqg7d70q4',1,'made by a task: plain',NULL,NULL,'[]','[]',1795477487134,NULL,NULL,'usr_01m85crf6h79xef026yj1hzyrx',NULL);
INSERT INTO "workers" VALUES(1,'wrk_01m85crfcvb2qa4k39s48sgq4g','org_01m85crf6h20jbsk1m354q2qpt','usr_01m85crf6h79xef026yj1hzyrx','Scribe','Writes','public',1,1795477487003,1795477487003,NULL,'shared',NULL,'created');
INSERT INTO "workers" VALUES(2,'wrk_01m85crfd0t7w81r0p8c6hjc8a','org_01m85crf6h20jbsk1m354q2qpt','usr_01m85crf6h79xef026yj1hzyrx','Other','','public',1,1795477487009,1795477487009,NULL,'shared',NULL,'created');
INSERT INTO "workers" VALUES(3,'wrk_01m85crfd5sefw1nwmqdxkm4fd','org_01m85crf6h20jbsk1m354q2qpt','usr_01m85crf6h79xef026yj1hzyrx','Careful','','public',1,1795477487013,1795477487013,NULL,'shared',NULL,'created');
INSERT INTO "workers" VALUES(4,'wrk_01m85crfgy84e6prjgqg7d70q4','org_01m85crf6h20jbsk1m354q2qpt','usr_01m85crf6h79xef026yj1hzyrx','made by a task: plain','','public',1,1795477487134,1795477487134,NULL,'shared',NULL,'task');
