-- Rows of a data folder that the last release with version 3 of the schema filled, and that was killed at work.
INSERT INTO "api_keys" VALUES(1,'key_01m84v4qcn8fqbmyj3zgsj87wa','org_01m84v4qcnjk8w462b84mv50vz','usr_01m84v4qcnavvmzzdfrg4bydkz','First key',X'5FD4869DB8D83E072F5FB3FD69F2698825A8E4B61C7BF8D6330DC143F050C0D7','jm_live_the_',1795459014037,1795458960000,NULL,NULL,NULL);
INSERT INTO "api_keys" VALUES(2,'key_01m84v4qzyhxnqtm33j88z87rs','org_01m84v4qcnjk8w462b84mv50vz','usr_01m84v4qzy3c8s2j0rqs0584zz','Bob',X'A83E4E3D002C7646AC3A95655B4677D08CA82C41CE09FEB6936F37A73CEFE0A3','jm_live_B6_Q',1795459014654,1795458960000,NULL,NULL,NULL);
INSERT INTO "approvals" VALUES(1,'apr_01m84v4r720926j3r849vzncm6','approval','org_01m84v4qcnjk8w462b84mv50vz',5,6,0,0,'pending','',NULL,NULL,NULL,1795459014883,NULL,NULL);
INSERT INTO "approvals" VALUES(2,'apr_01m84v4r7dan2yaxmjmvm3rwv3','question','org_01m84v4qcnjk8w462b84mv50vz',6,7,0,0,'pending','',NULL,NULL,NULL,1795459014893,NULL,NULL);
INSERT INTO "audit_log" VALUES(1,'org_01m84v4qcnjk8w462b84mv50vz',NULL,NULL,'member.add','usr_01m84v4qcnavvmzzdfrg4bydkz','{"role":"owner","user":"ann@acme.test"}','',1795459014037);
INSERT INTO "audit_log" VALUES(2,'org_01m84v4qcnjk8w462b84mv50vz',NULL,NULL,'key.create','key_01m84v4qcn8fqbmyj3zgsj87wa','{"name":"First key","prefix":"jm_live_the_","user":"ann@acme.test"}','',1795459014037);
INSERT INTO "audit_log" VALUES(3,'org_01m84v4qcnjk8w462b84mv50vz',NULL,NULL,'password.set','usr_01m84v4qcnavvmzzdfrg4bydkz','{"user":"ann@acme.test"}','',1795459014170);
INSERT INTO "audit_log" VALUES(4,'org_01m84v4qcnjk8w462b84mv50vz','usr_01m84v4qcnavvmzzdfrg4bydkz',NULL,'session.create','ses_01m84v4qrkjse51xv7prjf2qgw','{}','127.0.0.1',1795459014420);
INSERT INTO "audit_log" VALUES(5,'org_01m84v4qcnjk8w462b84mv50vz',NULL,NULL,'member.add','usr_01m84v4qzy3c8s2j0rqs0584zz','{"role":"member","user":"bob@acme.test"}','',1795459014654);
INSERT INTO "audit_log" VALUES(6,'org_01m84v4qcnjk8w462b84mv50vz',NULL,NULL,'key.create','key_01m84v4qzyhxnqtm33j88z87rs','{"name":"Bob","prefix":"jm_live_B6_Q","user":"bob@acme.test"}','',1795459014655);
INSERT INTO "audit_log" VALUES(7,'org_01m84v4qcnjk8w462b84mv50vz','usr_01m84v4qcnavvmzzdfrg4bydkz','key_01m84v4qcn8fqbmyj3zgsj87wa','worker.keepTasks','wrk_01m84v4r092xd4sa8b2dnyjb0y','{"from":null,"title":"Scribe","to":0}','127.0.0.1',1795459014668);
INSERT INTO "audit_log" VALUES(8,'org_01m84v4qcnjk8w462b84mv50vz','usr_01m84v4qcnavvmzzdfrg4bydkz','key_01m84v4qcn8fqbmyj3zgsj87wa','worker.member.add','wrk_01m84v4r0edk31g6gd6ycvsmrn','{"user":"bob@acme.test"}','127.0.0.1',1795459014673);
INSERT INTO "audit_log" VALUES(9,'org_01m84v4qcnjk8w462b84mv50vz','usr_01m84v4qcnavvmzzdfrg4bydkz','key_01m84v4qcn8fqbmyj3zgsj87wa','webhook.set','wrk_01m84v4r092xd4sa8b2dnyjb0y','{"from":"","to":"http://127.0.0.1:40283/hook"}','127.0.0.1',1795459014677);
INSERT INTO "audit_log" VALUES(10,'org_01m84v4qcnjk8w462b84mv50vz','usr_01m84v4qcnavvmzzdfrg4bydkz','key_01m84v4qcn8fqbmyj3zgsj87wa','secret.create','sec_01m84v4r0qw3728p2fpjftewjf','{"hosts":["example.com"],"name":"TOKEN"}','127.0.0.1',1795459014682);
INSERT INTO "audit_log" VALUES(11,'org_01m84v4qcnjk8w462b84mv50vz','usr_01m84v4qcnavvmzzdfrg4bydkz','key_01m84v4qcn8fqbmyj3zgsj87wa','secret.create','sec_01m84v4r0wyqa5wk52carcx8f0','{"hosts":["example.com"],"name":"OWN","workerId":"wrk_01m84v4r092xd4sa8b2dnyjb0y"}','127.0.0.1',1795459014684);
INSERT INTO "audit_log" VALUES(12,'org_01m84v4qcnjk8w462b84mv50vz','usr_01m84v4qcnavvmzzdfrg4bydkz','key_01m84v4qcn8fqbmyj3zgsj87wa','worker.visibility','wrk_01m84v4rp5hz98h5g63g45j9eg','{"from":"public","title":"kept: private","to":"private"}','127.0.0.1',1795459015372);
INSERT INTO "audit_log" VALUES(13,'org_01m84v4qcnjk8w462b84mv50vz','usr_01m84v4qcnavvmzzdfrg4bydkz','key_01m84v4qcn8fqbmyj3zgsj87wa','worker.member.add','wrk_01m84v4rp5hz98h5g63g45j9eg','{"user":"bob@acme.test"}','127.0.0.1',1795459015373);
INSERT INTO "audit_log" VALUES(14,'org_01m84v4qcnjk8w462b84mv50vz','usr_01m84v4qcnavvmzzdfrg4bydkz','key_01m84v4qcn8fqbmyj3zgsj87wa','webhook.set','wrk_01m84v4rpxjz6e2n4tc1mm36er','{"from":"","to":"http://127.0.0.1:40283/hook"}','127.0.0.1',1795459015409);
INSERT INTO "audit_log" VALUES(15,'org_01m84v4qcnjk8w462b84mv50vz','usr_01m84v4qcnavvmzzdfrg4bydkz','key_01m84v4qcn8fqbmyj3zgsj87wa','secret.create','sec_01m84v4rqt1y845206c51aa8qq','{"hosts":["example.com"],"name":"OWN","workerId":"wrk_01m84v4rqmwh03xqx3xqket88a"}','127.0.0.1',1795459015418);
INSERT INTO "audit_log" VALUES(16,'org_01m84v4qcnjk8w462b84mv50vz','usr_01m84v4qcnavvmzzdfrg4bydkz','key_01m84v4qcn8fqbmyj3zgsj87wa','worker.delete','wrk_01m84v4rx2d2y2vm9xz11zxxas','{"title":"made by a task: deleted"}','127.0.0.1',1795459015593);
INSERT INTO "deliveries" VALUES(1,NULL,1,1,'task.completed',1,1795459019894,1795459014743,'completed',1,2935500,54);
INSERT INTO "deliveries" VALUES(2,NULL,1,2,'task.completed',1,NULL,1795459014771,'completed',2,3984500,55);
INSERT INTO "deliveries" VALUES(3,NULL,1,4,'task.failed',1,1795459020168,1795459014803,'error',1,0,0);
INSERT INTO "deliveries" VALUES(4,NULL,1,5,'task.completed',1,NULL,1795459014870,'completed',1,1966000,51);
INSERT INTO "deliveries" VALUES(5,'evt_01m84v4r7f6aq4whm0wmk3pvt9',1,7,'task.waiting',1,1795459019709,1795459014895,'running',1,975000,0);
INSERT INTO "deliveries" VALUES(6,NULL,1,8,'task.completed',1,NULL,1795459014955,'completed',1,2075500,10);
INSERT INTO "deliveries" VALUES(7,NULL,1,10,'task.completed',1,1795459020066,1795459014977,'completed',2,3150500,12);
INSERT INTO "deliveries" VALUES(8,NULL,1,11,'task.completed',1,NULL,1795459015003,'completed',1,569000,1);
INSERT INTO "files" VALUES(1,'fil_01m84v4r2f3q93tdgbk71qsxvy','wrk_01m84v4r092xd4sa8b2dnyjb0y',1,1,'published','a.md','','text/markdown',3,'327f031b25e00b1a7cd9b0c18f05948b60f55d09f9b3d177d21083f83a3cb6df',1795459014735);
INSERT INTO "idempotency" VALUES(0,1,'form f04801592d3bf742ef3b4a13eca9deb4425db6f6d6fddc1bb7d172b4fd60b540',X'F04801592D3BF742EF3B4A13ECA9DEB4425DB6F6D6FDDC1BB7D172B4FD60B540','trn_01m84v4rw5pssna34c6bmgajcs',1795545415557);
INSERT INTO "idempotency" VALUES(1,0,'one',X'DE27A169DA7B5D53C11F126A19DAF8BDC30E8FDFAF3BAF6035993FBF9E5B4E0B','trn_01m84v4r9rkg67z3ge8xyyb4f9',1795545414969);
INSERT INTO "idempotency" VALUES(1,0,X'04AEF8642AA329583C58145318153551',NULL,'trn_01m84v4rttnxn021j7nr8aap3a',1795459615514);
INSERT INTO "idempotency" VALUES(1,0,X'05F51EDCE38D50427EC222FF3342B1F0',NULL,'wrk_01m84v4r0edk31g6gd6ycvsmrn',1795459614671);
INSERT INTO "idempotency" VALUES(1,0,X'132E7BAD04662344882E50B660342F23',NULL,'trn_01m84v4tcy8vh09sdmdnreqccm',1795459617118);
INSERT INTO "idempotency" VALUES(1,0,X'1BAC33B3644095AE79567579849A2011',NULL,'trn_01m84v4rr9cpm107v8c4mqc993',1795459615434);
INSERT INTO "idempotency" VALUES(1,0,X'1E7ECF0A64CC098642ED3446B5B132F4',NULL,'trn_01m84v4rvkzqxbzcd8jacxwzcg',1795459615539);
INSERT INTO "idempotency" VALUES(1,0,X'2BBD528F478885C0DF1C3C7D88BE71D2',NULL,'trn_01m84v4rbbanknxk8meadj4gga',1795459615019);
INSERT INTO "idempotency" VALUES(1,0,X'2C0DFF58AEAC8DB89ADC6277AA66D052',NULL,'trn_01m84v4rp5k090wq0rh2kgcpsd',1795459615365);
INSERT INTO "idempotency" VALUES(1,0,X'34E8821800D2A65EDAB46B364C1148F7',NULL,'trn_01m84v4rpgmnchfs3gckp1xyng',1795459615376);
INSERT INTO "idempotency" VALUES(1,0,X'3770A9180B268BF595F6FF35773E764B',NULL,'trn_01m84v4rnmrx8h0jdjacksnn36',1795459615348);
INSERT INTO "idempotency" VALUES(1,0,X'38D134E4F089F4F2ADF6305FFE0F79B5',NULL,'trn_01m84v4rb6skcwyd5ve4b6ajf5',1795459615014);
INSERT INTO "idempotency" VALUES(1,0,X'393466407FABD3E0D08550EE4918B1D9',NULL,'sch_01m84v4ragac8v7fh4fff3tefq',1795459614992);
INSERT INTO "idempotency" VALUES(1,0,X'3EBABDF7908928B3A31241D66636D663',NULL,'sch_01m84v4racsa9gdwbs0cm3h6ap',1795459614988);
INSERT INTO "idempotency" VALUES(1,0,X'439FE7CF3EB7618F40125FDF590CC29E',NULL,'trn_01m84v4tdpj3hst0qdcd9krpy1',1795459617142);
INSERT INTO "idempotency" VALUES(1,0,X'465DCE7E82DF5E24E9BA375AA8090FEE',NULL,'trn_01m84v4rx2pk94zxn4zv0cppvz',1795459615587);
INSERT INTO "idempotency" VALUES(1,0,X'4BED907BCDD4EA5C1BA691D9146FAAB4',NULL,'wrk_01m84v4rvggeywp83jbttnmfcx',1795459615536);
INSERT INTO "idempotency" VALUES(1,0,X'4CCD1C655015831008382B06FBE131B0',NULL,'trn_01m84v4r3xpft4jbse74v6db63',1795459614782);
INSERT INTO "idempotency" VALUES(1,0,X'6AD885A6DB60671960479EF06E7A09D6',NULL,'trn_01m84v4tcmkd589jy2h2xkk84k',1795459617108);
INSERT INTO "idempotency" VALUES(1,0,X'6E6D46423A0C9C9F1C56C9739917BD75',NULL,'trn_01m84v4rb2p5nqdy1rkrbqn9rp',1795459615010);
INSERT INTO "idempotency" VALUES(1,0,X'76D28FEB64CE1B3FAFA24D92D6C3EF17',NULL,'trn_01m84v4rnx0v393h0wz22c2gqx',1795459615357);
INSERT INTO "idempotency" VALUES(1,0,X'790852A796C06E4A4A4ABAE45CDAA8CB',NULL,'trn_01m84v4tc8dzwpwmbh6q21rm6s',1795459617097);
INSERT INTO "idempotency" VALUES(1,0,X'7E3677B5E33D98C0957639DD53E52712',NULL,'trn_01m84v4rbfvvwqebc7rb3d2949',1795459615024);
INSERT INTO "idempotency" VALUES(1,0,X'828FEA8191B3EF702E8630263B5FF126',NULL,'trn_01m84v4r6x21rpzwb4setzjnng',1795459614877);
INSERT INTO "idempotency" VALUES(1,0,X'8ACB5B50C93572561CE57F2C13106F45',NULL,'trn_01m84v4r3fnmmzp4xsfed0a8vt',1795459614767);
INSERT INTO "idempotency" VALUES(1,0,X'8E637B5D249E80B40BF150912F0F51F9',NULL,'trn_01m84v4raxavznb6q82edkqpk3',1795459615005);
INSERT INTO "idempotency" VALUES(1,0,X'981CD271EA97FD1E390B49EC3D68F4F3',NULL,'trn_01m84v4tdem3mkafa5cq227rdm',1795459617134);
INSERT INTO "idempotency" VALUES(1,0,X'992C86D9EBF08A5096AFCC3030DEFA40',NULL,'trn_01m84v4rbvcr28rttksc2wh7k6',1795459615035);
INSERT INTO "idempotency" VALUES(1,0,X'A069010D8829E53935477D219346C2F4',NULL,'trn_01m84v4rqm80rh73j4nkkcc5ny',1795459615412);
INSERT INTO "idempotency" VALUES(1,0,X'AE66D4ADDCC05AA1849A85E10E90DEB5',NULL,'trn_01m84v4rpx3j7tj134thef0cwd',1795459615389);
INSERT INTO "idempotency" VALUES(1,0,X'B6852A8F7DEC48808575E14B1CBEDC83',NULL,'trn_01m84v4td85nkqssgck9y2btxz',1795459617128);
INSERT INTO "idempotency" VALUES(1,0,X'BA27A5D80BE387A1188624DD556847AA',NULL,'trn_01m84v4r0zdm73hrz1zv0aq29y',1795459614688);
INSERT INTO "idempotency" VALUES(1,0,X'C01A4F5274A7DE38F847C9DEA0F5A887',NULL,'trn_01m84v4rr4v8jnbhya0t4k1mjc',1795459615428);
INSERT INTO "idempotency" VALUES(1,0,X'C49606CEF9AEDD9F4031D59F98B0D799',NULL,'trn_01m84v4rqx0jf188w0fgxbpg0z',1795459615421);
INSERT INTO "idempotency" VALUES(1,0,X'C4A8CFFA9844B32A7CCE5D3B90A1F77A',NULL,'trn_01m84v4r7fg6an8y0qfzkmsj2r',1795459614896);
INSERT INTO "idempotency" VALUES(1,0,X'D1E41564F48B594F3EF27E246BA7DDD7',NULL,'wrk_01m84v4r0kpxtnges114cw4h82',1795459614675);
INSERT INTO "idempotency" VALUES(1,0,X'DA55A3DDA835BD335F86A4C700EB31EB',NULL,'sch_01m84v4ra7awww93vmc2qs7brf',1795459614983);
INSERT INTO "idempotency" VALUES(1,0,X'DDC2E0ECB18E4AE637FB17579466CFDA',NULL,'sch_01m84v4rpn8yk4p4afgydrvx2a',1795459615381);
INSERT INTO "idempotency" VALUES(1,0,X'E926758A370E80E85068E5AF2A9B0ED8',NULL,'trn_01m84v4rrrc5h531yrvr22szny',1795459615449);
INSERT INTO "idempotency" VALUES(1,0,X'F3CFCC62EC87875B257064896E6C3092',NULL,'trn_01m84v4r75n4j2wjg9h6cbn94v',1795459614886);
INSERT INTO "idempotency" VALUES(1,0,X'F9D7D904AF806885A719D1FE8AB02C3C',NULL,'trn_01m84v4r4crmq7tqkw43h70wp8',1795459614797);
INSERT INTO "idempotency" VALUES(1,0,X'FD02CFF699931E4BC1B90C6FF0A8FAD0',NULL,'wrk_01m84v4r092xd4sa8b2dnyjb0y',1795459614666);
INSERT INTO "idempotency" VALUES(2,0,X'835B7107C827B897018FEDD870738737',NULL,'trn_01m84v4r4zb6c7r01bknyvnthz',1795459614815);
INSERT INTO "idempotency" VALUES(2,0,X'97E048173EAC292B003552D7ED63EB13',NULL,'trn_01m84v4rbkpahspk0mcgj53zz6',1795459615028);
INSERT INTO "inbound_emails" VALUES(1,'msg_01m84v4ran9jk4e35cv4ktfpy8','org_01m84v4qcnjk8w462b84mv50vz','wrk_01m84v4r092xd4sa8b2dnyjb0y','1@x.test','accepted','',11,'carl@x.test','carl@x.test','wrk_01m84v4r092xd4sa8b2dnyjb0y@localhost','carl@x.test','Hi','{"spf":{"result":"none"},"dkim":[],"dmarc":{"result":"none"},"authenticated":false,"local":true}','127.0.0.1',112,1795459014997,NULL,X'46726F6D3A206361726C40782E746573740D0A546F3A2077726B5F30316D38347634723039327864347361386232646E796A623079406C6F63616C686F73740D0A5375626A6563743A2048690D0A4D6573736167652D49443A203C3140782E746573743E0D0A0D0A48656C6C6F3F0D0A');
INSERT INTO "inbound_emails" VALUES(2,'msg_01m84v4rasrt2x19jqyf07sssd','org_01m84v4qcnjk8w462b84mv50vz','wrk_01m84v4r092xd4sa8b2dnyjb0y','2@x.test','ignored','bounce',NULL,'','carl@x.test','wrk_01m84v4r092xd4sa8b2dnyjb0y@localhost','carl@x.test','Hi','{"spf":{"result":""},"dkim":null,"dmarc":{"result":""},"authenticated":false,"local":false}','127.0.0.1',112,1795459015001,NULL,X'46726F6D3A206361726C40782E746573740D0A546F3A2077726B5F30316D38347634723039327864347361386232646E796A623079406C6F63616C686F73740D0A5375626A6563743A2048690D0A4D6573736167652D49443A203C3240782E746573743E0D0A0D0A48656C6C6F3F0D0A');
INSERT INTO "inbound_emails" VALUES(3,'msg_01m84v4rrnbx7xnc6q21sqwkzq','org_01m84v4qcnjk8w462b84mv50vz','wrk_01m84v4rr9scwkcs3mv33ktndq','3@x.test','accepted','',28,'carl@x.test','carl@x.test','wrk_01m84v4rr9scwkcs3mv33ktndq@localhost','carl@x.test','Hi','{"spf":{"result":"none"},"dkim":[],"dmarc":{"result":"none"},"authenticated":false,"local":true}','127.0.0.1',112,1795459015445,NULL,X'46726F6D3A206361726C40782E746573740D0A546F3A2077726B5F30316D383476347272397363776B6373336D7633336B746E6471406C6F63616C686F73740D0A5375626A6563743A2048690D0A4D6573736167652D49443A203C3340782E746573743E0D0A0D0A48656C6C6F3F0D0A');
INSERT INTO "memberships" VALUES('org_01m84v4qcnjk8w462b84mv50vz','usr_01m84v4qcnavvmzzdfrg4bydkz','owner',1795459014037,0);
INSERT INTO "memberships" VALUES('org_01m84v4qcnjk8w462b84mv50vz','usr_01m84v4qzy3c8s2j0rqs0584zz','member',1795459014654,0);
INSERT INTO "organizations" VALUES(1,'org_01m84v4qcnjk8w462b84mv50vz','Default',NULL,1795459014037,'');
INSERT INTO "outbound_emails" VALUES(1,'msg_01m84v4rattrnzee2svtz792x1','reply','org_01m84v4qcnjk8w462b84mv50vz','wrk_01m84v4r092xd4sa8b2dnyjb0y',11,1,NULL,NULL,NULL,'carl@x.test','Re: Hi','kept',1,NULL,0,'',1795459015002,NULL,1246,NULL,X'436F6E74656E742D547970653A206D756C7469706172742F616C7465726E61746976653B0D0A20626F756E646172793D3039653431616536303763303335656166663635636135353035666637663566333762356262316638353561383466643634313137393634333639390D0A4D696D652D56657273696F6E3A20312E300D0A582D4175746F2D526573706F6E73652D53757070726573733A20416C6C0D0A4175746F2D5375626D69747465643A206175746F2D7265706C6965640D0A5265666572656E6365733A203C3140782E746573743E0D0A496E2D5265706C792D546F3A203C3140782E746573743E0D0A4D6573736167652D49643A203C6D73675F30316D3834763472617474726E7A6565327376747A3739327831406C6F63616C686F73743E0D0A5375626A6563743A2052653A2048690D0A5265706C792D546F3A203C77726B5F30316D38347634723039327864347361386232646E796A6230792B74736B5F30316D3834763472616E336E33776A32766B76333677397A6638406C6F63616C686F73743E0D0A546F3A203C6361726C40782E746573743E0D0A46726F6D3A202253637269626522203C77726B5F30316D38347634723039327864347361386232646E796A623079406C6F63616C686F73743E0D0A446174653A204D6F6E2C203233204E6F7620323032362031383A33363A3535202B303030300D0A0D0A2D2D3039653431616536303763303335656166663635636135353035666637663566333762356262316638353561383466643634313137393634333639390D0A436F6E74656E742D446973706F736974696F6E3A20696E6C696E650D0A436F6E74656E742D5472616E736665722D456E636F64696E673A2071756F7465642D7072696E7461626C650D0A436F6E74656E742D547970653A20746578742F706C61696E3B20636861727365743D7574662D380D0A0D0A5468697320697320746865206F66666C696E65206D6F64656C3A20697420666F6C6C6F77732066697865642072756C657320616E642063616E206F6E6C792071756F74652E0D0A0D0A496E737472756374696F6E733A2048656C70206D6F72652E0D0A0D0A496E7075743A2048656C6C6F3F0D0A0D0A2D2D3039653431616536303763303335656166663635636135353035666637663566333762356262316638353561383466643634313137393634333639390D0A436F6E74656E742D446973706F736974696F6E3A20696E6C696E650D0A436F6E74656E742D5472616E736665722D456E636F64696E673A2071756F7465642D7072696E7461626C650D0A436F6E74656E742D547970653A20746578742F68746D6C3B20636861727365743D7574662D380D0A0D0A3C21444F43545950452068746D6C3E0D0A3C68746D6C3E3C626F64793E0D0A3C703E5468697320697320746865206F66666C696E65206D6F64656C3A20697420666F6C6C6F77732066697865642072756C657320616E642063616E206F6E6C792071756F74652E3C2F703D0D0A3E0D0A3C703E496E737472756374696F6E733A2048656C70206D6F72652E3C2F703E0D0A3C703E496E7075743A2048656C6C6F3F3C2F703E0D0A3C2F626F64793E3C2F68746D6C3E0D0A0D0A2D2D3039653431616536303763303335656166663635636135353035666637663566333762356262316638353561383466643634313137393634333639392D2D0D0A');
INSERT INTO "outbound_emails" VALUES(2,'msg_01m84v4rrsxftjkwmy0n2pqwe1','reply','org_01m84v4qcnjk8w462b84mv50vz','wrk_01m84v4rr9scwkcs3mv33ktndq',28,3,NULL,NULL,NULL,'carl@x.test','Re: Hi','kept',1,NULL,0,'',1795459015449,NULL,1259,NULL,X'436F6E74656E742D547970653A206D756C7469706172742F616C7465726E61746976653B0D0A20626F756E646172793D6233636565333462363636653233653234663034376532323638393364323230366566386436336538626132343536383162316235623330386162320D0A4D696D652D56657273696F6E3A20312E300D0A582D4175746F2D526573706F6E73652D53757070726573733A20416C6C0D0A4175746F2D5375626D69747465643A206175746F2D7265706C6965640D0A5265666572656E6365733A203C3340782E746573743E0D0A496E2D5265706C792D546F3A203C3340782E746573743E0D0A4D6573736167652D49643A203C6D73675F30316D383476347272737866746A6B776D79306E327071776531406C6F63616C686F73743E0D0A5375626A6563743A2052653A2048690D0A5265706C792D546F3A203C77726B5F30316D383476347272397363776B6373336D7633336B746E64712B74736B5F30316D3834763472726E6A797A67723731376879736A79633533406C6F63616C686F73743E0D0A546F3A203C6361726C40782E746573743E0D0A46726F6D3A20226B6570743A206279206D61696C22203C77726B5F30316D383476347272397363776B6373336D7633336B746E6471406C6F63616C686F73743E0D0A446174653A204D6F6E2C203233204E6F7620323032362031383A33363A3535202B303030300D0A0D0A2D2D6233636565333462363636653233653234663034376532323638393364323230366566386436336538626132343536383162316235623330386162320D0A436F6E74656E742D446973706F736974696F6E3A20696E6C696E650D0A436F6E74656E742D5472616E736665722D456E636F64696E673A2071756F7465642D7072696E7461626C650D0A436F6E74656E742D547970653A20746578742F706C61696E3B20636861727365743D7574662D380D0A0D0A5468697320697320746865206F66666C696E65206D6F64656C3A20697420666F6C6C6F77732066697865642072756C657320616E642063616E206F6E6C792071756F74652E0D0A0D0A496E737472756374696F6E733A206B6570743A206279206D61696C0D0A0D0A496E7075743A2048656C6C6F3F0D0A0D0A2D2D6233636565333462363636653233653234663034376532323638393364323230366566386436336538626132343536383162316235623330386162320D0A436F6E74656E742D446973706F736974696F6E3A20696E6C696E650D0A436F6E74656E742D5472616E736665722D456E636F64696E673A2071756F7465642D7072696E7461626C650D0A436F6E74656E742D547970653A20746578742F68746D6C3B20636861727365743D7574662D380D0A0D0A3C21444F43545950452068746D6C3E0D0A3C68746D6C3E3C626F64793E0D0A3C703E5468697320697320746865206F66666C696E65206D6F64656C3A20697420666F6C6C6F77732066697865642072756C657320616E642063616E206F6E6C792071756F74652E3C2F703D0D0A3E0D0A3C703E496E737472756374696F6E733A206B6570743A206279206D61696C3C2F703E0D0A3C703E496E7075743A2048656C6C6F3F3C2F703E0D0A3C2F626F64793E3C2F68746D6C3E0D0A0D0A2D2D6233636565333462363636653233653234663034376532323638393364323230366566386436336538626132343536383162316235623330386162322D2D0D0A');
INSERT INTO "runners" VALUES('run_01m84v4qcfes2rvcsnfjn9z8j9',1795459074181);
INSERT INTO "schedules" VALUES(1,'sch_01m84v4ra7awww93vmc2qs7brf','org_01m84v4qcnjk8w462b84mv50vz','wrk_01m84v4r092xd4sa8b2dnyjb0y','usr_01m84v4qcnavvmzzdfrg4bydkz','Report','standard','cron',NULL,'0 9 * * 1',NULL,'UTC',1795459014983,1796029200000,NULL,0,1795459014983,NULL,NULL);
INSERT INTO "schedules" VALUES(2,'sch_01m84v4racsa9gdwbs0cm3h6ap','org_01m84v4qcnjk8w462b84mv50vz','wrk_01m84v4r092xd4sa8b2dnyjb0y','usr_01m84v4qcnavvmzzdfrg4bydkz','Report','standard','interval',NULL,NULL,3600.0,NULL,1795459014988,1795462614988,NULL,0,1795459014988,NULL,NULL);
INSERT INTO "schedules" VALUES(3,'sch_01m84v4ragac8v7fh4fff3tefq','org_01m84v4qcnjk8w462b84mv50vz','wrk_01m84v4r092xd4sa8b2dnyjb0y','usr_01m84v4qcnavvmzzdfrg4bydkz','Report','standard','scheduled',NULL,NULL,NULL,NULL,1893456000000,1893456000000,NULL,0,1795459014992,NULL,NULL);
INSERT INTO "schedules" VALUES(4,'sch_01m84v4rpn8yk4p4afgydrvx2a','org_01m84v4qcnjk8w462b84mv50vz','wrk_01m84v4rpfetet4qjb0x37akpf','usr_01m84v4qcnavvmzzdfrg4bydkz','Report','standard','interval',NULL,NULL,3600.0,NULL,1795459015381,NULL,NULL,0,1795459015381,1795459015383,NULL);
INSERT INTO "secrets" VALUES('sec_01m84v4r0qw3728p2fpjftewjf','org_01m84v4qcnjk8w462b84mv50vz',NULL,'TOKEN','["example.com"]',X'07A8B9297E9671C303D9888DADC7C4CCB1BDF9EBBDFE9635A18F073DFF029244CC51502FE58B70C6A1E2','usr_01m84v4qcnavvmzzdfrg4bydkz',1795459014679,1795459014679);
INSERT INTO "secrets" VALUES('sec_01m84v4r0wyqa5wk52carcx8f0','org_01m84v4qcnjk8w462b84mv50vz','wrk_01m84v4r092xd4sa8b2dnyjb0y','OWN','["example.com"]',X'D50847054FD89BBC3F753350AA587783BCD626F4B17E141FD25AAAEB735E27F38B139F04B5ABACF6E7','usr_01m84v4qcnavvmzzdfrg4bydkz',1795459014684,1795459014684);
INSERT INTO "secrets" VALUES('sec_01m84v4rqt1y845206c51aa8qq','org_01m84v4qcnjk8w462b84mv50vz','wrk_01m84v4rqmwh03xqx3xqket88a','OWN','["example.com"]',X'C50B1376B50F7498C6838FF2CAE141EA2ACA3C8D2B2174B666B92B29D425EF16C91D6B4ACAAC826225','usr_01m84v4qcnavvmzzdfrg4bydkz',1795459015418,1795459015418);
INSERT INTO "sessions" VALUES('ses_01m84v4qrkjse51xv7prjf2qgw',X'0213CD77DD939C271201CF2D89248554F2F75ED56F02BE87FC1E5B4B8E6586B4','usr_01m84v4qcnavvmzzdfrg4bydkz','org_01m84v4qcnjk8w462b84mv50vz','Python-urllib/3.11','127.0.0.1',1795459014419,1795459014419,1796668614419);
INSERT INTO "sources" VALUES(1,'src_01m84v4r52mgrjf07eq71ggj7x',4,5,'http://127.0.0.1:40283/','Tide',1795459014865);
INSERT INTO "spending" VALUES('org_01m84v4qcnjk8w462b84mv50vz',24322,35986500);
INSERT INTO "steps" VALUES(1,0,257,'[{"type":"reasoning","text":"Hm."},{"type":"tool-call","callId":"call_1","toolName":"write_file","input":{"path":"a.md","content":"# A"}}]','tool-calls','','offline',2946,1901,11,0,0,1,972500,1795459014693,1795459014693,0);
INSERT INTO "steps" VALUES(1,1,257,'[{"type":"tool-call","callId":"call_2","toolName":"publish_file","input":{"path":"a.md"}}]','tool-calls','','offline',2986,1921,7,0,0,0,974500,1795459014718,1795459014718,0);
INSERT INTO "steps" VALUES(1,2,257,'','stop','','offline',3065,1969,2,0,0,0,988500,1795459014742,1795459014742,1);
INSERT INTO "steps" VALUES(2,0,257,'','stop','','offline',3175,1974,31,0,0,0,1049000,1795459014770,1795459014770,1);
INSERT INTO "steps" VALUES(3,0,257,'','stop','','offline',848,341,3,0,0,0,176500,1795459014787,1795459014787,1);
INSERT INTO "steps" VALUES(5,0,257,'[{"type":"tool-call","callId":"call_1","toolName":"web_fetch","input":{"url":"http://127.0.0.1:40283/"}}]','tool-calls','','offline',2924,1882,11,0,0,0,963000,1795459014816,1795459014816,0);
INSERT INTO "steps" VALUES(5,1,257,'','stop','','offline',2996,1926,20,0,0,0,1003000,1795459014866,1795459014867,1);
INSERT INTO "steps" VALUES(6,0,257,'[{"type":"tool-call","callId":"call_1","toolName":"write_file","input":{"path":"b.md","content":"B"}}]','tool-calls','','offline',2932,1902,10,0,0,0,971000,1795459014882,1795459014882,0);
INSERT INTO "steps" VALUES(7,0,257,'[{"type":"tool-call","callId":"call_1","toolName":"ask_user","input":{"question":"Which one?","choices":["a","b"]}}]','tool-calls','','offline',2940,1894,14,0,0,0,975000,1795459014892,1795459014893,0);
INSERT INTO "steps" VALUES(8,0,257,'[{"type":"tool-call","callId":"call_1","toolName":"run_worker","input":{"worker":"wrk_01m84v4r0kpxtnges114cw4h82","input":"What is it?"}}]','tool-calls','','offline',2947,1900,19,0,0,0,988000,1795459014904,1795459014904,0);
INSERT INTO "steps" VALUES(9,0,257,'','stop','','offline',2921,1888,23,0,0,0,990000,1795459014932,1795459014932,1);
INSERT INTO "steps" VALUES(8,1,513,'','stop','','offline',3052,1971,51,0,0,0,1087500,1795459014955,1795459014955,1);
INSERT INTO "steps" VALUES(10,0,257,'','stop','','offline',3225,2026,31,0,0,0,1075000,1795459014977,1795459014977,1);
INSERT INTO "steps" VALUES(11,0,257,'','stop','','offline',1828,1026,28,0,0,0,569000,1795459015002,1795459015002,1);
INSERT INTO "steps" VALUES(12,0,257,'','stop','','offline',2904,1880,25,0,0,0,990000,1795459015006,1795459015007,1);
INSERT INTO "steps" VALUES(13,0,257,'','stop','','offline',2918,1892,31,0,0,0,1008000,1795459015011,1795459015011,1);
INSERT INTO "steps" VALUES(14,0,257,'','stop','','offline',3055,1925,35,0,0,0,1032500,1795459015016,1795459015016,1);
INSERT INTO "steps" VALUES(15,0,257,'','stop','','offline',2920,1891,6,0,0,0,957500,1795459015021,1795459015021,1);
INSERT INTO "steps" VALUES(17,0,257,'','stop','','offline',2908,1883,27,0,0,0,995500,1795459015030,1795459015030,1);
INSERT INTO "steps" VALUES(19,0,257,'','stop','','offline',2900,1876,23,0,0,0,984000,1795459015349,1795459015350,1);
INSERT INTO "steps" VALUES(20,0,257,'','stop','','offline',2904,1879,25,0,0,0,989500,1795459015359,1795459015359,1);
INSERT INTO "steps" VALUES(21,0,257,'','stop','','offline',2900,1876,23,0,0,0,984000,1795459015367,1795459015367,1);
INSERT INTO "steps" VALUES(22,0,257,'','stop','','offline',2902,1877,24,0,0,0,986500,1795459015377,1795459015378,1);
INSERT INTO "steps" VALUES(23,0,257,'','stop','','offline',2904,1880,25,0,0,0,990000,1795459015403,1795459015403,1);
INSERT INTO "steps" VALUES(24,0,257,'','stop','','offline',2904,1879,25,0,0,0,989500,1795459015413,1795459015414,1);
INSERT INTO "steps" VALUES(25,0,257,'','stop','','offline',2902,1878,24,0,0,0,987000,1795459015423,1795459015423,1);
INSERT INTO "steps" VALUES(26,0,257,'','stop','','offline',2902,1878,32,0,0,0,1003000,1795459015430,1795459015430,1);
INSERT INTO "steps" VALUES(27,0,257,'','stop','','offline',2900,1876,23,0,0,0,984000,1795459015439,1795459015439,1);
INSERT INTO "steps" VALUES(28,0,257,'','stop','','offline',1828,1027,29,0,0,0,571500,1795459015448,1795459015448,1);
INSERT INTO "steps" VALUES(29,0,257,'','stop','','offline',2900,1876,23,0,0,0,984000,1795459015451,1795459015451,1);
INSERT INTO "steps" VALUES(30,0,257,'','stop','','offline',2900,1877,27,0,0,0,992500,1795459015532,1795459015532,1);
INSERT INTO "steps" VALUES(31,0,257,'','stop','','offline',2902,1878,24,0,0,0,987000,1795459015551,1795459015551,1);
INSERT INTO "steps" VALUES(32,0,257,'','stop','','offline',2905,1879,25,0,0,0,989500,1795459015559,1795459015563,1);
INSERT INTO "steps" VALUES(33,0,257,'','stop','','offline',2906,1881,26,0,0,0,992500,1795459015588,1795459015588,1);
INSERT INTO "steps" VALUES(34,0,257,'[{"type":"reasoning","text":"Hm"},{"type":"tool-call","callId":"call_1","toolName":"list_files","input":{}}]','tool-calls','','offline',2928,1887,4,0,0,1,951500,1795459017100,1795459017100,0);
INSERT INTO "steps" VALUES(35,0,257,'[{"type":"reasoning","text":"Hm"},{"type":"tool-call","callId":"call_1","toolName":"list_files","input":{}}]','tool-calls','','offline',2928,1887,4,0,0,1,951500,1795459017110,1795459017110,0);
INSERT INTO "steps" VALUES(36,0,257,'[{"type":"reasoning","text":"Hm"},{"type":"tool-call","callId":"call_1","toolName":"list_files","input":{}}]','tool-calls','','offline',2928,1887,4,0,0,1,951500,1795459017121,1795459017121,0);
INSERT INTO "steps" VALUES(37,0,257,'[{"type":"reasoning","text":"Hm"},{"type":"tool-call","callId":"call_1","toolName":"list_files","input":{}}]','tool-calls','','offline',2928,1887,4,0,0,1,951500,1795459017130,1795459017131,0);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(1,'first',1,1,1,'think Hm.','api',2,0,0,'completed',3984500,55,1795459014687,1795459014770,NULL,0,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(2,'json',1,2,1,'json {"a":"b"}','api',1,0,0,'completed',176500,0,1795459014781,1795459014787,NULL,0,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(3,'failed',1,1,1,'fail 400 no such thing','api',1,0,0,'error',0,0,1795459014796,1795459014803,NULL,0,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(4,'looked',1,1,2,'Read http://127.0.0.1:40283/ and tell.','api',1,0,0,'completed',1966000,51,1795459014814,1795459014870,NULL,0,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(5,'asked',1,3,1,'tool write_file {"path":"b.md","content":"B"}','api',1,1,1,'',971000,0,1795459014876,NULL,NULL,1,'person');
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(6,'question',1,1,1,'tool ask_user {"question":"Which one?","choices":["a","b"]}','api',1,1,1,'',975000,0,1795459014885,NULL,NULL,0,'person');
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(7,'team',1,1,1,'tool run_worker {"worker":"wrk_01m84v4r0kpxtnges114cw4h82","input":"What is it?…','api',2,0,0,'completed',3150500,12,1795459014895,1795459014977,NULL,0,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(8,'tsk_01m84v4r809xsdd4736dc17z12',1,3,1,'What is it?','api',1,0,0,'completed',990000,1,1795459014912,1795459014932,NULL,1,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(9,'tsk_01m84v4ran3n3wj2vkv36w9zf8',1,1,NULL,'Hi','email',1,0,0,'completed',569000,1,1795459014997,1795459015002,NULL,1,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(10,'tsk_01m84v4rax5t5jvp948q712980',1,4,1,'made by a task: plain','api',1,0,0,'completed',990000,0,1795459015005,1795459015007,NULL,0,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(11,'twice',1,5,1,'made by a task: with a second turn','api',2,0,0,'completed',2040500,0,1795459015010,1795459015016,NULL,0,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(12,'tsk_01m84v4rbbpaby12g541rvd8mv',1,6,1,'say made by a task: a script','api',1,0,0,'completed',957500,0,1795459015019,1795459015021,NULL,0,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(13,'tsk_01m84v4rbft2m9nfyjfm3fpjst',1,7,1,'made by a task: failed','api',1,0,0,'error',0,0,1795459015023,1795459015025,NULL,0,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(14,'tsk_01m84v4rbk5d4yc34fqq2p3fg3',1,8,2,'made by a task: of a member','api',1,0,0,'completed',995500,0,1795459015027,1795459015030,NULL,0,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(15,'cancelled',1,9,1,'made by a task: cancelled','api',1,0,0,'aborted',0,308,1795459015035,1795459015344,NULL,0,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(16,'tsk_01m84v4rnknhndtvvaqxsn2qgx',1,10,1,'kept: edited','api',1,0,0,'completed',984000,0,1795459015347,1795459015350,NULL,0,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(17,'tsk_01m84v4rnxns5x40ed7s564tps',1,11,1,'kept: title changed','api',1,0,0,'completed',989500,0,1795459015357,1795459015359,NULL,0,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(18,'tsk_01m84v4rp5smw0y7ye62chjacp',1,12,1,'kept: private','api',1,0,0,'completed',984000,0,1795459015365,1795459015367,NULL,0,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(19,'tsk_01m84v4rpgbvdksshk2c0sdjg1',1,13,1,'kept: scheduled','api',1,0,0,'completed',986500,0,1795459015376,1795459015378,NULL,0,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(20,'tsk_01m84v4rpxb8q9a2q8vzhmejz9',1,14,1,'kept: with a webhook','api',1,0,0,'completed',990000,0,1795459015389,1795459015403,NULL,0,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(21,'tsk_01m84v4rqmphcgv6g9tf4ahwvk',1,15,1,'kept: with a secret','api',1,0,0,'completed',989500,0,1795459015412,1795459015414,NULL,0,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(22,'tsk_01m84v4rqxq15jyj29a4xysy2a',1,16,1,'kept: used again','api',1,0,0,'completed',987000,0,1795459015421,1795459015423,NULL,0,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(23,'tsk_01m84v4rr4phqahsj24850ey55',1,16,1,'Another task of it','api',1,0,0,'completed',1003000,0,1795459015428,1795459015430,NULL,0,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(24,'tsk_01m84v4rr9vpr5p1ad4f6q8wwk',1,17,1,'kept: by mail','api',1,0,0,'completed',984000,0,1795459015433,1795459015439,NULL,0,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(25,'tsk_01m84v4rrnjyzgr717hysjyc53',1,17,NULL,'Hi','email',1,0,0,'completed',571500,0,1795459015445,1795459015449,NULL,1,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(26,'tsk_01m84v4rrrav618ajrsfd1zqds',1,18,1,'kept: pinned','api',1,0,0,'completed',984000,0,1795459015448,1795459015451,NULL,0,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(27,'tsk_01m84v4rtt8gfjkcw6n9qk18gx',1,19,1,'kept: created with an input','api',1,0,0,'completed',992500,0,1795459015514,1795459015532,NULL,0,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(28,'tsk_01m84v4rvkwpps93p96ab338hh',1,20,1,'kept: run at once','api',1,0,0,'completed',987000,0,1795459015539,1795459015552,NULL,0,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(29,'tsk_01m84v4rw5dy32x1wb6c2z33w9',1,21,1,'kept: run on a page','ui',1,0,0,'completed',989500,4,1795459015557,1795459015564,NULL,0,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(30,'tsk_01m84v4rx2ekzeyvhw1xc2ghyy',1,22,1,'made by a task: deleted','api',1,0,0,'completed',992500,0,1795459015586,1795459015588,NULL,0,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(31,'cut0',1,1,1,'think Hm','api',1,1,1,'',951500,0,1795459017096,NULL,NULL,0,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(32,'cut1',1,1,1,'think Hm','api',1,1,1,'',951500,0,1795459017108,NULL,NULL,0,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(33,'cut2',1,1,1,'think Hm','api',1,1,1,'',951500,0,1795459017118,NULL,NULL,0,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(34,'cut3',1,1,1,'think Hm','api',1,1,1,'',951500,0,1795459017128,NULL,NULL,0,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(35,'cut4',1,1,1,'think Hm','api',1,1,0,'',0,0,1795459017133,NULL,NULL,0,NULL);
INSERT INTO "tasks" (num, id, organization_num, worker_num, created_by_num, title, triggered_by, turn_count, unfinished, running, outcome, cost, duration_ms, created_at, completed_at, archived_at, own_folder, waits_for) VALUES(36,'cut5',1,1,1,'think Hm','api',1,1,0,'',0,0,1795459017141,NULL,NULL,0,NULL);
INSERT INTO "tool_calls" VALUES(1,0,0,'completed','{"path":"a.md","size":3}',0,1795459014695,1795459014706);
INSERT INTO "tool_calls" VALUES(1,1,0,'completed','{"path":"a.md","mediaType":"text/markdown","size":3,"url":"http://127.0.0.1:60381/api/workers/wrk_01m84v4r092xd4sa8b2dnyjb0y/files/a.md?v=327f031b25e0"}',0,1795459014724,1795459014734);
INSERT INTO "tool_calls" VALUES(5,0,0,'completed','{"url":"http://127.0.0.1:40283/","title":"Tide","mediaType":"text/html","content":"The tide table of the harbour says nine."}',0,1795459014818,1795459014865);
INSERT INTO "tool_calls" VALUES(8,0,0,'completed','{"worker":"Careful","task":"tsk_01m84v4r809xsdd4736dc17z12","status":"completed","output":"This is the offline model: it follows fixed rules and can only quote.\n\nInput: What is it?","credits":0.099}
',0,1795459014945,1795459014946);
INSERT INTO "tool_calls" VALUES(34,0,0,'completed','"a.md\t3\n"',0,1795459017107,1795459017108);
INSERT INTO "tool_calls" VALUES(35,0,0,'completed','"a.md\t3\n"',0,1795459017114,1795459017115);
INSERT INTO "tool_calls" VALUES(36,0,0,'completed','"a.md\t3\n"',0,1795459017122,1795459017122);
INSERT INTO "tool_calls" VALUES(37,0,0,'completed','"a.md\t3\n"',0,1795459017134,1795459017134);
INSERT INTO "turns" VALUES(1,'trn_01m84v4r0zdm73hrz1zv0aq29y',1,0,1,1,2,1,1,0,'api','```offline
think Hm.
tool write_file {"path":"a.md","content":"# A"}
tool publish_file {"path":"a.md"}
say Done.
```','standard','completed',1,NULL,NULL,1,0,0,'Done.',NULL,NULL,NULL,NULL,NULL,NULL,'offline',3,5791,20,0,0,1,2935500,0,54,NULL,NULL,1795459014687,1795459014687,1795459014743,NULL,'Monday, 2026-11-23, 18:36"ann", "ann@acme.test"empty',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(2,'trn_01m84v4r3fnmmzp4xsfed0a8vt',1,1,1,1,2,1,1,0,'api','And again, please.','standard','completed',1,NULL,NULL,1,0,0,'This is the offline model: it follows fixed rules and can only quote.

Instructions: Help more.

Input: And again, please.',NULL,NULL,NULL,NULL,NULL,NULL,'offline',1,1974,31,0,0,0,1049000,0,1,NULL,NULL,1795459014767,1795459014767,1795459014770,NULL,'Monday, 2026-11-23, 18:36"ann", "ann@acme.test""a.md"',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(3,'trn_01m84v4r3xpft4jbse74v6db63',2,0,1,2,1,1,1,0,'api','```offline
json {"a":"b"}
```','standard','completed',1,NULL,NULL,1,0,0,'{"a":"b"}','',NULL,NULL,NULL,NULL,NULL,'offline',1,341,3,0,0,0,176500,0,0,NULL,NULL,1795459014781,1795459014781,1795459014787,NULL,'Monday, 2026-11-23, 18:36"ann", "ann@acme.test"empty',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(4,'trn_01m84v4r4crmq7tqkw43h70wp8',3,0,1,1,2,1,1,0,'api','```offline
fail 400 no such thing
```','standard','error',1,NULL,NULL,1,0,0,'',NULL,'400','no such thing',0,NULL,NULL,'',0,0,0,0,0,0,0,0,0,NULL,NULL,1795459014796,1795459014796,1795459014803,NULL,'Monday, 2026-11-23, 18:36"ann", "ann@acme.test""a.md"',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(5,'trn_01m84v4r4zb6c7r01bknyvnthz',4,0,1,1,2,2,2,0,'api','Read http://127.0.0.1:40283/ and tell.','standard','completed',1,NULL,NULL,1,0,0,'The tide table of the harbour says nine.

Source: Tide, http://127.0.0.1:40283/',NULL,NULL,NULL,NULL,NULL,NULL,'offline',2,3808,31,0,0,0,1966000,0,51,NULL,NULL,1795459014814,1795459014814,1795459014870,NULL,'Monday, 2026-11-23, 18:36"bob", "bob@acme.test""a.md"',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(6,'trn_01m84v4r6x21rpzwb4setzjnng',5,0,1,3,1,1,1,1,'api','```offline
tool write_file {"path":"b.md","content":"B"}
say ok
```','standard','running',1,NULL,1796063814886,1,0,0,'',NULL,NULL,NULL,NULL,NULL,NULL,'offline',1,1902,10,0,0,0,971000,0,0,NULL,NULL,1795459014876,1795459014876,NULL,NULL,'Monday, 2026-11-23, 18:36"ann", "ann@acme.test"empty','person',NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(7,'trn_01m84v4r75n4j2wjg9h6cbn94v',6,0,1,1,2,1,1,0,'api','```offline
tool ask_user {"question":"Which one?","choices":["a","b"]}
say {{last}}
```','standard','running',1,NULL,1796063814895,1,0,0,'',NULL,NULL,NULL,NULL,NULL,NULL,'offline',1,1894,14,0,0,0,975000,0,0,NULL,NULL,1795459014885,1795459014885,NULL,NULL,'Monday, 2026-11-23, 18:36"ann", "ann@acme.test""a.md"','person',NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(8,'trn_01m84v4r7fg6an8y0qfzkmsj2r',7,0,1,1,2,1,1,0,'api','```offline
tool run_worker {"worker":"wrk_01m84v4r0kpxtnges114cw4h82","input":"What is it?"}
say {{last}}
```','standard','completed',1,NULL,NULL,2,0,0,'{"worker":"Careful","task":"tsk_01m84v4r809xsdd4736dc17z12","status":"completed","output":"This is the offline model: it follows fixed rules and can only quote.\n\nInput: What is it?","credits":0.099}
',NULL,NULL,NULL,NULL,NULL,NULL,'offline',2,3871,70,0,0,0,2075500,0,10,NULL,NULL,1795459014895,1795459014895,1795459014955,NULL,'Monday, 2026-11-23, 18:36"ann", "ann@acme.test""a.md"',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(9,'trn_01m84v4r800mc6cx724qa3117m',8,0,1,3,1,1,1,1,'api','What is it?','standard','completed',1,NULL,NULL,1,0,0,'This is the offline model: it follows fixed rules and can only quote.

Input: What is it?',NULL,NULL,NULL,NULL,NULL,NULL,'offline',1,1888,23,0,0,0,990000,0,1,NULL,NULL,1795459014912,1795459014924,1795459014932,NULL,'Monday, 2026-11-23, 18:36, UTC"Scribe""ann", "ann@acme.test"empty',NULL,NULL,NULL,NULL,0,8,0,0,8,1);
INSERT INTO "turns" VALUES(10,'trn_01m84v4r9rkg67z3ge8xyyb4f9',7,1,1,1,2,1,1,0,'api','Continue, please.','standard','completed',1,NULL,NULL,1,0,0,'This is the offline model: it follows fixed rules and can only quote.

Instructions: Help more.

Input: Continue, please.',NULL,NULL,NULL,NULL,NULL,NULL,'offline',1,2026,31,0,0,0,1075000,0,2,NULL,NULL,1795459014968,1795459014968,1795459014977,NULL,'Monday, 2026-11-23, 18:36"ann", "ann@acme.test""a.md"',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(11,'trn_01m84v4ran9bbpj5k950xxdzjf',9,0,1,1,2,NULL,NULL,1,'email','Hello?','standard','completed',1,NULL,NULL,1,0,0,'This is the offline model: it follows fixed rules and can only quote.

Instructions: Help more.

Input: Hello?',NULL,NULL,NULL,NULL,NULL,NULL,'offline',1,1026,28,0,0,0,569000,0,1,NULL,NULL,1795459014997,1795459014999,1795459015002,NULL,'Monday, 2026-11-23, 18:36, UTC"carl@x.test""the mail came from this machine and is not verified")"Hi"empty',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(12,'trn_01m84v4raxavznb6q82edkqpk3',10,0,1,4,1,1,1,0,'api','made by a task: plain','standard','completed',1,NULL,NULL,1,0,0,'This is the offline model: it follows fixed rules and can only quote.

Input: made by a task: plain',NULL,NULL,NULL,NULL,NULL,NULL,'offline',1,1880,25,0,0,0,990000,0,0,NULL,NULL,1795459015005,1795459015005,1795459015007,NULL,'Monday, 2026-11-23, 18:36"ann", "ann@acme.test"empty',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(13,'trn_01m84v4rb2p5nqdy1rkrbqn9rp',11,0,1,5,1,1,1,0,'api','# made by a task: with a second turn

Do it.','standard','completed',1,NULL,NULL,1,0,0,'This is the offline model: it follows fixed rules and can only quote.

Input: # made by a task: with a second turn

Do it.',NULL,NULL,NULL,NULL,NULL,NULL,'offline',1,1892,31,0,0,0,1008000,0,0,NULL,NULL,1795459015010,1795459015010,1795459015011,NULL,'Monday, 2026-11-23, 18:36"ann", "ann@acme.test"empty',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(14,'trn_01m84v4rb6skcwyd5ve4b6ajf5',11,1,1,5,1,1,1,0,'api','And then?','standard','completed',1,NULL,NULL,1,0,0,'This is the offline model: it follows fixed rules and can only quote.

Instructions: made by a task: with a second turn

Input: And then?',NULL,NULL,NULL,NULL,NULL,NULL,'offline',1,1925,35,0,0,0,1032500,0,0,NULL,NULL,1795459015014,1795459015014,1795459015016,NULL,'Monday, 2026-11-23, 18:36"ann", "ann@acme.test"empty',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(15,'trn_01m84v4rbbanknxk8meadj4gga',12,0,1,6,1,1,1,0,'api','```offline
say made by a task: a script
```','standard','completed',1,NULL,NULL,1,0,0,'made by a task: a script',NULL,NULL,NULL,NULL,NULL,NULL,'offline',1,1891,6,0,0,0,957500,0,0,NULL,NULL,1795459015019,1795459015019,1795459015021,NULL,'Monday, 2026-11-23, 18:36"ann", "ann@acme.test"empty',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(16,'trn_01m84v4rbfvvwqebc7rb3d2949',13,0,1,7,1,1,1,0,'api','made by a task: failed
```offline
fail 400 no
```','standard','error',1,NULL,NULL,1,0,0,'',NULL,'400','no',0,NULL,NULL,'',0,0,0,0,0,0,0,0,0,NULL,NULL,1795459015023,1795459015023,1795459015025,NULL,'Monday, 2026-11-23, 18:36"ann", "ann@acme.test"empty',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(17,'trn_01m84v4rbkpahspk0mcgj53zz6',14,0,1,8,1,2,2,0,'api','made by a task: of a member','standard','completed',1,NULL,NULL,1,0,0,'This is the offline model: it follows fixed rules and can only quote.

Input: made by a task: of a member',NULL,NULL,NULL,NULL,NULL,NULL,'offline',1,1883,27,0,0,0,995500,0,0,NULL,NULL,1795459015027,1795459015027,1795459015030,NULL,'Monday, 2026-11-23, 18:36"bob", "bob@acme.test"empty',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(18,'trn_01m84v4rbvcr28rttksc2wh7k6',15,0,1,9,1,1,1,0,'api','made by a task: cancelled
```offline
wait 20s
```','standard','aborted',1,NULL,NULL,1,0,1,'',NULL,'aborted','the task was cancelled',0,'aborted',NULL,'',0,0,0,0,0,0,0,0,308,NULL,NULL,1795459015035,1795459015035,1795459015344,NULL,'Monday, 2026-11-23, 18:36"ann", "ann@acme.test"empty',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(19,'trn_01m84v4rnmrx8h0jdjacksnn36',16,0,1,10,1,1,1,0,'api','kept: edited','standard','completed',1,NULL,NULL,1,0,0,'This is the offline model: it follows fixed rules and can only quote.

Input: kept: edited',NULL,NULL,NULL,NULL,NULL,NULL,'offline',1,1876,23,0,0,0,984000,0,0,NULL,NULL,1795459015347,1795459015347,1795459015350,NULL,'Monday, 2026-11-23, 18:36"ann", "ann@acme.test"empty',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(20,'trn_01m84v4rnx0v393h0wz22c2gqx',17,0,1,11,1,1,1,0,'api','kept: title changed','standard','completed',1,NULL,NULL,1,0,0,'This is the offline model: it follows fixed rules and can only quote.

Input: kept: title changed',NULL,NULL,NULL,NULL,NULL,NULL,'offline',1,1879,25,0,0,0,989500,0,0,NULL,NULL,1795459015357,1795459015357,1795459015359,NULL,'Monday, 2026-11-23, 18:36"ann", "ann@acme.test"empty',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(21,'trn_01m84v4rp5k090wq0rh2kgcpsd',18,0,1,12,1,1,1,0,'api','kept: private','standard','completed',1,NULL,NULL,1,0,0,'This is the offline model: it follows fixed rules and can only quote.

Input: kept: private',NULL,NULL,NULL,NULL,NULL,NULL,'offline',1,1876,23,0,0,0,984000,0,0,NULL,NULL,1795459015365,1795459015365,1795459015367,NULL,'Monday, 2026-11-23, 18:36"ann", "ann@acme.test"empty',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(22,'trn_01m84v4rpgmnchfs3gckp1xyng',19,0,1,13,1,1,1,0,'api','kept: scheduled','standard','completed',1,NULL,NULL,1,0,0,'This is the offline model: it follows fixed rules and can only quote.

Input: kept: scheduled',NULL,NULL,NULL,NULL,NULL,NULL,'offline',1,1877,24,0,0,0,986500,0,0,NULL,NULL,1795459015376,1795459015376,1795459015378,NULL,'Monday, 2026-11-23, 18:36"ann", "ann@acme.test"empty',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(23,'trn_01m84v4rpx3j7tj134thef0cwd',20,0,1,14,1,1,1,0,'api','kept: with a webhook','standard','completed',1,NULL,NULL,1,0,0,'This is the offline model: it follows fixed rules and can only quote.

Input: kept: with a webhook',NULL,NULL,NULL,NULL,NULL,NULL,'offline',1,1880,25,0,0,0,990000,0,0,NULL,NULL,1795459015389,1795459015389,1795459015403,NULL,'Monday, 2026-11-23, 18:36"ann", "ann@acme.test"empty',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(24,'trn_01m84v4rqm80rh73j4nkkcc5ny',21,0,1,15,1,1,1,0,'api','kept: with a secret','standard','completed',1,NULL,NULL,1,0,0,'This is the offline model: it follows fixed rules and can only quote.

Input: kept: with a secret',NULL,NULL,NULL,NULL,NULL,NULL,'offline',1,1879,25,0,0,0,989500,0,0,NULL,NULL,1795459015412,1795459015412,1795459015414,NULL,'Monday, 2026-11-23, 18:36"ann", "ann@acme.test"empty',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(25,'trn_01m84v4rqx0jf188w0fgxbpg0z',22,0,1,16,1,1,1,0,'api','kept: used again','standard','completed',1,NULL,NULL,1,0,0,'This is the offline model: it follows fixed rules and can only quote.

Input: kept: used again',NULL,NULL,NULL,NULL,NULL,NULL,'offline',1,1878,24,0,0,0,987000,0,0,NULL,NULL,1795459015421,1795459015421,1795459015423,NULL,'Monday, 2026-11-23, 18:36"ann", "ann@acme.test"empty',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(26,'trn_01m84v4rr4v8jnbhya0t4k1mjc',23,0,1,16,1,1,1,0,'api','Another task of it','standard','completed',1,NULL,NULL,1,0,0,'This is the offline model: it follows fixed rules and can only quote.

Instructions: kept: used again

Input: Another task of it',NULL,NULL,NULL,NULL,NULL,NULL,'offline',1,1878,32,0,0,0,1003000,0,0,NULL,NULL,1795459015428,1795459015428,1795459015430,NULL,'Monday, 2026-11-23, 18:36"ann", "ann@acme.test"empty',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(27,'trn_01m84v4rr9cpm107v8c4mqc993',24,0,1,17,1,1,1,0,'api','kept: by mail','standard','completed',1,NULL,NULL,1,0,0,'This is the offline model: it follows fixed rules and can only quote.

Input: kept: by mail',NULL,NULL,NULL,NULL,NULL,NULL,'offline',1,1876,23,0,0,0,984000,0,0,NULL,NULL,1795459015433,1795459015433,1795459015439,NULL,'Monday, 2026-11-23, 18:36"ann", "ann@acme.test"empty',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(28,'trn_01m84v4rrnrn7pb3ze49f8nxea',25,0,1,17,1,NULL,NULL,1,'email','Hello?','standard','completed',1,NULL,NULL,1,0,0,'This is the offline model: it follows fixed rules and can only quote.

Instructions: kept: by mail

Input: Hello?',NULL,NULL,NULL,NULL,NULL,NULL,'offline',1,1027,29,0,0,0,571500,0,0,NULL,NULL,1795459015445,1795459015447,1795459015449,NULL,'Monday, 2026-11-23, 18:36, UTC"carl@x.test""the mail came from this machine and is not verified")"Hi"empty',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(29,'trn_01m84v4rrrc5h531yrvr22szny',26,0,1,18,1,1,1,0,'api','kept: pinned','standard','completed',1,NULL,NULL,1,0,0,'This is the offline model: it follows fixed rules and can only quote.

Input: kept: pinned',NULL,NULL,NULL,NULL,NULL,NULL,'offline',1,1876,23,0,0,0,984000,0,0,NULL,NULL,1795459015448,1795459015448,1795459015451,NULL,'Monday, 2026-11-23, 18:36"ann", "ann@acme.test"empty',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(30,'trn_01m84v4rttnxn021j7nr8aap3a',27,0,1,19,1,1,1,0,'api','kept: created with an input','standard','completed',1,NULL,NULL,1,0,0,'This is the offline model: it follows fixed rules and can only quote.

Input: kept: created with an input',NULL,NULL,NULL,NULL,NULL,NULL,'offline',1,1877,27,0,0,0,992500,0,0,NULL,NULL,1795459015514,1795459015514,1795459015532,NULL,'Monday, 2026-11-23, 18:36"ann", "ann@acme.test"empty',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(31,'trn_01m84v4rvkzqxbzcd8jacxwzcg',28,0,1,20,1,1,1,0,'api','kept: run at once','standard','completed',1,NULL,NULL,1,0,0,'This is the offline model: it follows fixed rules and can only quote.

Input: kept: run at once',NULL,NULL,NULL,NULL,NULL,NULL,'offline',1,1878,24,0,0,0,987000,0,0,NULL,NULL,1795459015539,1795459015539,1795459015552,NULL,'Monday, 2026-11-23, 18:36"ann", "ann@acme.test"empty',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(32,'trn_01m84v4rw5pssna34c6bmgajcs',29,0,1,21,1,1,NULL,0,'ui','kept: run on a page','standard','completed',1,NULL,NULL,1,0,0,'This is the offline model: it follows fixed rules and can only quote.

Input: kept: run on a page',NULL,NULL,NULL,NULL,NULL,NULL,'offline',1,1879,25,0,0,0,989500,0,4,NULL,NULL,1795459015557,1795459015557,1795459015564,NULL,'Monday, 2026-11-23, 18:36, UTC"ann", "ann@acme.test"empty',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(33,'trn_01m84v4rx2pk94zxn4zv0cppvz',30,0,1,22,1,1,1,0,'api','made by a task: deleted','standard','completed',1,NULL,NULL,1,0,0,'This is the offline model: it follows fixed rules and can only quote.

Input: made by a task: deleted',NULL,NULL,NULL,NULL,NULL,NULL,'offline',1,1881,26,0,0,0,992500,0,0,NULL,NULL,1795459015586,1795459015586,1795459015588,NULL,'Monday, 2026-11-23, 18:36"ann", "ann@acme.test"empty',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(34,'trn_01m84v4tc8dzwpwmbh6q21rm6s',31,0,1,1,2,1,1,0,'api','```offline
think Hm
tool list_files {}
wait 30s
say late
```','standard','running',1,'run_01m84v4qcfes2rvcsnfjn9z8j9',NULL,1,0,0,'',NULL,NULL,NULL,NULL,NULL,NULL,'offline',1,1887,4,0,0,1,951500,0,0,NULL,NULL,1795459017096,1795459017096,NULL,NULL,'Monday, 2026-11-23, 18:36"ann", "ann@acme.test""a.md"',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(35,'trn_01m84v4tcmkd589jy2h2xkk84k',32,0,1,1,2,1,1,0,'api','```offline
think Hm
tool list_files {}
wait 30s
say late
```','standard','running',1,'run_01m84v4qcfes2rvcsnfjn9z8j9',NULL,1,0,0,'',NULL,NULL,NULL,NULL,NULL,NULL,'offline',1,1887,4,0,0,1,951500,0,0,NULL,NULL,1795459017108,1795459017108,NULL,NULL,'Monday, 2026-11-23, 18:36"ann", "ann@acme.test""a.md"',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(36,'trn_01m84v4tcy8vh09sdmdnreqccm',33,0,1,1,2,1,1,0,'api','```offline
think Hm
tool list_files {}
wait 30s
say late
```','standard','running',1,'run_01m84v4qcfes2rvcsnfjn9z8j9',NULL,1,0,0,'',NULL,NULL,NULL,NULL,NULL,NULL,'offline',1,1887,4,0,0,1,951500,0,0,NULL,NULL,1795459017118,1795459017118,NULL,NULL,'Monday, 2026-11-23, 18:36"ann", "ann@acme.test""a.md"',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(37,'trn_01m84v4td85nkqssgck9y2btxz',34,0,1,1,2,1,1,0,'api','```offline
think Hm
tool list_files {}
wait 30s
say late
```','standard','running',1,'run_01m84v4qcfes2rvcsnfjn9z8j9',NULL,1,0,0,'',NULL,NULL,NULL,NULL,NULL,NULL,'offline',1,1887,4,0,0,1,951500,0,0,NULL,NULL,1795459017128,1795459017128,NULL,NULL,'Monday, 2026-11-23, 18:36"ann", "ann@acme.test""a.md"',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(38,'trn_01m84v4tdem3mkafa5cq227rdm',35,0,1,1,2,1,1,0,'api','```offline
think Hm
tool list_files {}
wait 30s
say late
```','standard','pending',1,NULL,NULL,0,0,0,'',NULL,NULL,NULL,NULL,NULL,NULL,'',0,0,0,0,0,0,0,0,0,NULL,NULL,1795459017133,NULL,NULL,NULL,'Monday, 2026-11-23, 18:36"ann", "ann@acme.test""a.md"',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "turns" VALUES(39,'trn_01m84v4tdpj3hst0qdcd9krpy1',36,0,1,1,2,1,1,0,'api','```offline
think Hm
tool list_files {}
wait 30s
say late
```','standard','pending',1,NULL,NULL,0,0,0,'',NULL,NULL,NULL,NULL,NULL,NULL,'',0,0,0,0,0,0,0,0,0,NULL,NULL,1795459017141,NULL,NULL,NULL,'Monday, 2026-11-23, 18:36"ann", "ann@acme.test""a.md"',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0);
INSERT INTO "usage" VALUES('org_01m84v4qcnjk8w462b84mv50vz',20780,'wrk_01m84v4r092xd4sa8b2dnyjb0y','','email',1,0,1,1026,28,569000,1);
INSERT INTO "usage" VALUES('org_01m84v4qcnjk8w462b84mv50vz',20780,'wrk_01m84v4r092xd4sa8b2dnyjb0y','key_01m84v4qcn8fqbmyj3zgsj87wa','api',5,1,12,23104,182,11916000,67);
INSERT INTO "usage" VALUES('org_01m84v4qcnjk8w462b84mv50vz',20780,'wrk_01m84v4r092xd4sa8b2dnyjb0y','key_01m84v4qzyhxnqtm33j88z87rs','api',1,0,2,3808,31,1966000,51);
INSERT INTO "usage" VALUES('org_01m84v4qcnjk8w462b84mv50vz',20780,'wrk_01m84v4r0edk31g6gd6ycvsmrn','key_01m84v4qcn8fqbmyj3zgsj87wa','api',1,0,1,341,3,176500,0);
INSERT INTO "usage" VALUES('org_01m84v4qcnjk8w462b84mv50vz',20780,'wrk_01m84v4r0kpxtnges114cw4h82','key_01m84v4qcn8fqbmyj3zgsj87wa','api',1,0,2,3790,33,1961000,1);
INSERT INTO "usage" VALUES('org_01m84v4qcnjk8w462b84mv50vz',20780,'wrk_01m84v4raw7rk450jdcmw3e4fc','key_01m84v4qcn8fqbmyj3zgsj87wa','api',1,0,1,1880,25,990000,0);
INSERT INTO "usage" VALUES('org_01m84v4qcnjk8w462b84mv50vz',20780,'wrk_01m84v4rb1xkmy70my781a0d5c','key_01m84v4qcn8fqbmyj3zgsj87wa','api',2,0,2,3817,66,2040500,0);
INSERT INTO "usage" VALUES('org_01m84v4qcnjk8w462b84mv50vz',20780,'wrk_01m84v4rbbw6j4yjqwqj8w8csw','key_01m84v4qcn8fqbmyj3zgsj87wa','api',1,0,1,1891,6,957500,0);
INSERT INTO "usage" VALUES('org_01m84v4qcnjk8w462b84mv50vz',20780,'wrk_01m84v4rbf05rtxmmkwkwpap7k','key_01m84v4qcn8fqbmyj3zgsj87wa','api',1,1,0,0,0,0,0);
INSERT INTO "usage" VALUES('org_01m84v4qcnjk8w462b84mv50vz',20780,'wrk_01m84v4rbkedbwmxrn8825pqyc','key_01m84v4qzyhxnqtm33j88z87rs','api',1,0,1,1883,27,995500,0);
INSERT INTO "usage" VALUES('org_01m84v4qcnjk8w462b84mv50vz',20780,'wrk_01m84v4rbt67f4wev8qkara36y','key_01m84v4qcn8fqbmyj3zgsj87wa','api',1,0,0,0,0,0,308);
INSERT INTO "usage" VALUES('org_01m84v4qcnjk8w462b84mv50vz',20780,'wrk_01m84v4rnkg5j6q2d3mnmqneht','key_01m84v4qcn8fqbmyj3zgsj87wa','api',1,0,1,1876,23,984000,0);
INSERT INTO "usage" VALUES('org_01m84v4qcnjk8w462b84mv50vz',20780,'wrk_01m84v4rnxhkgqwjmr8zyg4qb4','key_01m84v4qcn8fqbmyj3zgsj87wa','api',1,0,1,1879,25,989500,0);
INSERT INTO "usage" VALUES('org_01m84v4qcnjk8w462b84mv50vz',20780,'wrk_01m84v4rp5hz98h5g63g45j9eg','key_01m84v4qcn8fqbmyj3zgsj87wa','api',1,0,1,1876,23,984000,0);
INSERT INTO "usage" VALUES('org_01m84v4qcnjk8w462b84mv50vz',20780,'wrk_01m84v4rpfetet4qjb0x37akpf','key_01m84v4qcn8fqbmyj3zgsj87wa','api',1,0,1,1877,24,986500,0);
INSERT INTO "usage" VALUES('org_01m84v4qcnjk8w462b84mv50vz',20780,'wrk_01m84v4rpxjz6e2n4tc1mm36er','key_01m84v4qcn8fqbmyj3zgsj87wa','api',1,0,1,1880,25,990000,0);
INSERT INTO "usage" VALUES('org_01m84v4qcnjk8w462b84mv50vz',20780,'wrk_01m84v4rqmwh03xqx3xqket88a','key_01m84v4qcn8fqbmyj3zgsj87wa','api',1,0,1,1879,25,989500,0);
INSERT INTO "usage" VALUES('org_01m84v4qcnjk8w462b84mv50vz',20780,'wrk_01m84v4rqwcp4zbs1p0x8005fm','key_01m84v4qcn8fqbmyj3zgsj87wa','api',2,0,2,3756,56,1990000,0);
INSERT INTO "usage" VALUES('org_01m84v4qcnjk8w462b84mv50vz',20780,'wrk_01m84v4rr9scwkcs3mv33ktndq','','email',1,0,1,1027,29,571500,0);
INSERT INTO "usage" VALUES('org_01m84v4qcnjk8w462b84mv50vz',20780,'wrk_01m84v4rr9scwkcs3mv33ktndq','key_01m84v4qcn8fqbmyj3zgsj87wa','api',1,0,1,1876,23,984000,0);
INSERT INTO "usage" VALUES('org_01m84v4qcnjk8w462b84mv50vz',20780,'wrk_01m84v4rrrpk8t2kfhyfc29dwz','key_01m84v4qcn8fqbmyj3zgsj87wa','api',1,0,1,1876,23,984000,0);
INSERT INTO "usage" VALUES('org_01m84v4qcnjk8w462b84mv50vz',20780,'wrk_01m84v4rtt8hvvqn1dak8atvnv','key_01m84v4qcn8fqbmyj3zgsj87wa','api',1,0,1,1877,27,992500,0);
INSERT INTO "usage" VALUES('org_01m84v4qcnjk8w462b84mv50vz',20780,'wrk_01m84v4rvggeywp83jbttnmfcx','key_01m84v4qcn8fqbmyj3zgsj87wa','api',1,0,1,1878,24,987000,0);
INSERT INTO "usage" VALUES('org_01m84v4qcnjk8w462b84mv50vz',20780,'wrk_01m84v4rw5syfhk3h12ns9ezr2','','ui',1,0,1,1879,25,989500,4);
INSERT INTO "usage" VALUES('org_01m84v4qcnjk8w462b84mv50vz',20780,'wrk_01m84v4rx2d2y2vm9xz11zxxas','key_01m84v4qcn8fqbmyj3zgsj87wa','api',1,0,1,1881,26,992500,0);
INSERT INTO "users" VALUES(1,'usr_01m84v4qcnavvmzzdfrg4bydkz','ann@acme.test','ann','$argon2id$v=19$m=19456,t=2,p=1$1QRnogMBkKwW8RGCcbP8Wg$7Ijvkso9egzyhAX7beVuVHpK8YjC/anJTIRayfQd+FI',1795459014037,'','',1);
INSERT INTO "users" VALUES(2,'usr_01m84v4qzy3c8s2j0rqs0584zz','bob@acme.test','bob',NULL,1795459014654,'','',1);
INSERT INTO "webhook_exchanges" VALUES(1,'POST /hook HTTP/1.1
Host: 127.0.0.1:40283
Content-Type: application/json
User-Agent: Journeyman/0.1.0
Webhook-Id: evt_01m84v4r0zdm73hrz1zv0aq29y
Webhook-Signature: v1,SJhu25DnMak8p6YfMjlnRNyDB0a8/WbqF4hzDS+cT0c=
Webhook-Timestamp: 1795459014
X-Service-Token: (hidden)

{"id":"evt_01m84v4r0zdm73hrz1zv0aq29y","type":"task.completed","createdAt":"2026-11-23T18:36:54.743Z","task":{"id":"first","completedAt":"2026-11-23T18:36:54.743Z","createdAt":"2026-11-23T18:36:54.687Z","createdByUserId":"usr_01m84v4qcnavvmzzdfrg4bydkz","organizationId":"org_01m84v4qcnjk8w462b84mv50vz","status":"completed","title":"think Hm.","totals":{"credits":0.29355,"durationMs":54,"turnCount":1},"triggeredBy":"api","url":"http://127.0.0.1:60381/tasks/first","waitingFor":null,"workerId":"wrk_01m84v4r092xd4sa8b2dnyjb0y"},"turn":{"id":"trn_01m84v4r0zdm73hrz1zv0aq29y","taskId":"first","seq":0,"role":"assistant","status":"completed","input":"```offline\nthink Hm.\ntool write_file {\"path\":\"a.md\",\"content\":\"# A\"}\ntool publish_file {\"path\":\"a.md\"}\nsay Done.\n```","outputText":"Done.","inputTokens":5791,"outputTokens":20,"credits":0.29355,"durationMs":54,"startedAt":"2026-11-23T18:36:54.687Z","completedAt":"2026-11-23T18:36:54.743Z","structuredOutput":null,"waitingFor":null,"workerVersion":2},"worker":{"id":"wrk_01m84v4r092xd4sa8b2dnyjb0y","created_at":1795459014,"error":null,"incomplete_details":null,"files":[{"filename":"a.md","mediaType":"text/markdown","url":"http://127.0.0.1:60381/api/workers/wrk_01m84v4r092xd4sa8b2dnyjb0y/files/a.md?v=327f031b25e0","size":3}],"messages":[{"id":"msg_01m84v4r0zcrr2mceyd7zaff7s","role":"user","metadata":{"taskId":"first","turnId":"trn_01m84v4r0zdm73hrz1zv0aq29y","seq":0,"createdAt":"2026-11-23T18:36:54.687Z"},"parts":[{"type":"text","text":"```offline\nthink Hm.\ntool write_file {\"path\":\"a.md\",\"content\":\"# A\"}\ntool publish_file {\"path\":\"a.md\"}\nsay Done.\n```"}]},{"id":"msg_01m84v4r0zdka4by79vqcxdf3h","role":"assistant","metadata":{"taskId":"first","turnId":"trn_01m84v4r0zdm73hrz1zv0aq29y","seq":0,"createdAt":"2026-11-23T18:36:54.687Z","usage":{"cacheReadTokens":0,"cacheWriteTokens":0,"costUsd":0.0029355,"inputTokens":5791,"outputTokens":20,"reasoningTokens":1,"steps":3,"totalTokens":5811,"credits":0.29355,"durationMs":54}},"parts":[{"type":"step-start"},{"type":"reasoning","id":"s0p0","text":"Hm.","state":"done"},{"type":"dynamic-tool","state":"output-available","toolName":"write_file","toolCallId":"call_1","input":{"path":"a.md","content":"# A"},"output":{"path":"a.md","size":3}},{"type":"step-start"},{"type":"dynamic-tool","state":"output-available","toolName":"publish_file","toolCallId":"call_2","input":{"path":"a.md"},"output":{"path":"a.md","mediaType":"text/markdown","size":3,"url":"http://127.0.0.1:60381/api/workers/wrk_01m84v4r092xd4sa8b2dnyjb0y/files/a.md?v=327f031b25e0"}},{"type":"step-start"},{"type":"text","text":"Done.","state":"done"},{"type":"file","url":"http://127.0.0.1:60381/api/workers/wrk_01m84v4r092xd4sa8b2dnyjb0y/files/a.md?v=327f031b25e0","mediaType":"text/markdown"}]}],"metadata":{"taskId":"first","turnId":"trn_01m84v4r0zdm73hrz1zv0aq29y","turnStatus":"completed","taskStatus":"completed","triggeredBy":"api","budget":"standard","model":"offline"},"object":"worker","output":[{"id":"msg_01m84v4r0zdka4by79vqcxdf3h","content":[{"text":"Done.","type":"output_text"}],"role":"assistant","status":"completed","type":"message"}],"output_text":"Done.","running":false,"sources":[],"status":"completed","costs":{"internalCostUsd":0,"modelCostUsd":0.0029355,"sandboxCostUsd":0,"toolCostUsd":0},"usage":{"cacheReadTokens":0,"cacheWriteTokens":0,"costUsd":0.0029355,"inputTokens":5791,"outputTokens":20,"reasoningTokens":1,"steps":3,"totalTokens":5811,"credits":0.29355,"durationMs":54},"structured_output":null,"url":"http://127.0.0.1:60381/workers/wrk_01m84v4r092xd4sa8b2dnyjb0y","waitingFor":null}}','HTTP/1.0 500 Internal Server Error
Content-Length: 2
Date: Mon, 23 Nov 2026 18:36:54 GMT
Server: BaseHTTP/0.6 Python/3.11.7

ok');
INSERT INTO "webhook_exchanges" VALUES(2,'POST /hook HTTP/1.1
Host: 127.0.0.1:40283
Content-Type: application/json
User-Agent: Journeyman/0.1.0
Webhook-Id: evt_01m84v4r3fnmmzp4xsfed0a8vt
Webhook-Signature: v1,iS8gVsxfLlZpaiSHpDzltx7+Yu7d22PkjXx0F7z9bOE=
Webhook-Timestamp: 1795459014
X-Service-Token: (hidden)

{"id":"evt_01m84v4r3fnmmzp4xsfed0a8vt","type":"task.completed","createdAt":"2026-11-23T18:36:54.771Z","task":{"id":"first","completedAt":"2026-11-23T18:36:54.770Z","createdAt":"2026-11-23T18:36:54.687Z","createdByUserId":"usr_01m84v4qcnavvmzzdfrg4bydkz","organizationId":"org_01m84v4qcnjk8w462b84mv50vz","status":"completed","title":"think Hm.","totals":{"credits":0.39845,"durationMs":55,"turnCount":2},"triggeredBy":"api","url":"http://127.0.0.1:60381/tasks/first","waitingFor":null,"workerId":"wrk_01m84v4r092xd4sa8b2dnyjb0y"},"turn":{"id":"trn_01m84v4r3fnmmzp4xsfed0a8vt","taskId":"first","seq":1,"role":"assistant","status":"completed","input":"And again, please.","outputText":"This is the offline model: it follows fixed rules and can only quote.\n\nInstructions: Help more.\n\nInput: And again, please.","inputTokens":1974,"outputTokens":31,"credits":0.1049,"durationMs":1,"startedAt":"2026-11-23T18:36:54.767Z","completedAt":"2026-11-23T18:36:54.770Z","structuredOutput":null,"waitingFor":null,"workerVersion":2},"worker":{"id":"wrk_01m84v4r092xd4sa8b2dnyjb0y","created_at":1795459014,"error":null,"incomplete_details":null,"files":[{"filename":"a.md","mediaType":"text/markdown","url":"http://127.0.0.1:60381/api/workers/wrk_01m84v4r092xd4sa8b2dnyjb0y/files/a.md?v=327f031b25e0","size":3}],"messages":[{"id":"msg_01m84v4r0zcrr2mceyd7zaff7s","role":"user","metadata":{"taskId":"first","turnId":"trn_01m84v4r0zdm73hrz1zv0aq29y","seq":0,"createdAt":"2026-11-23T18:36:54.687Z"},"parts":[{"type":"text","text":"```offline\nthink Hm.\ntool write_file {\"path\":\"a.md\",\"content\":\"# A\"}\ntool publish_file {\"path\":\"a.md\"}\nsay Done.\n```"}]},{"id":"msg_01m84v4r0zdka4by79vqcxdf3h","role":"assistant","metadata":{"taskId":"first","turnId":"trn_01m84v4r0zdm73hrz1zv0aq29y","seq":0,"createdAt":"2026-11-23T18:36:54.687Z","usage":{"cacheReadTokens":0,"cacheWriteTokens":0,"costUsd":0.0029355,"inputTokens":5791,"outputTokens":20,"reasoningTokens":1,"steps":3,"totalTokens":5811,"credits":0.29355,"durationMs":54}},"parts":[{"type":"step-start"},{"type":"reasoning","id":"s0p0","text":"Hm.","state":"done"},{"type":"dynamic-tool","state":"output-available","toolName":"write_file","toolCallId":"call_1","input":{"path":"a.md","content":"# A"},"output":{"path":"a.md","size":3}},{"type":"step-start"},{"type":"dynamic-tool","state":"output-available","toolName":"publish_file","toolCallId":"call_2","input":{"path":"a.md"},"output":{"path":"a.md","mediaType":"text/markdown","size":3,"url":"http://127.0.0.1:60381/api/workers/wrk_01m84v4r092xd4sa8b2dnyjb0y/files/a.md?v=327f031b25e0"}},{"type":"step-start"},{"type":"text","text":"Done.","state":"done"},{"type":"file","url":"http://127.0.0.1:60381/api/workers/wrk_01m84v4r092xd4sa8b2dnyjb0y/files/a.md?v=327f031b25e0","mediaType":"text/markdown"}]},{"id":"msg_01m84v4r3fet5brrm7m0cp6gzk","role":"user","metadata":{"taskId":"first","turnId":"trn_01m84v4r3fnmmzp4xsfed0a8vt","seq":1,"createdAt":"2026-11-23T18:36:54.767Z"},"parts":[{"type":"text","text":"And again, please."}]},{"id":"msg_01m84v4r3fys52s1q17ve22fyp","role":"assistant","metadata":{"taskId":"first","turnId":"trn_01m84v4r3fnmmzp4xsfed0a8vt","seq":1,"createdAt":"2026-11-23T18:36:54.767Z","usage":{"cacheReadTokens":0,"cacheWriteTokens":0,"costUsd":0.001049,"inputTokens":1974,"outputTokens":31,"reasoningTokens":0,"steps":1,"totalTokens":2005,"credits":0.1049,"durationMs":1}},"parts":[{"type":"step-start"},{"type":"text","text":"This is the offline model: it follows fixed rules and can only quote.\n\nInstructions: Help more.\n\nInput: And again, please.","state":"done"}]}],"metadata":{"taskId":"first","turnId":"trn_01m84v4r3fnmmzp4xsfed0a8vt","turnStatus":"completed","taskStatus":"completed","triggeredBy":"api","budget":"standard","model":"offline"},"object":"worker","output":[{"id":"msg_01m84v4r3fys52s1q17ve22fyp","content":[{"text":"This is the offline model: it follows fixed rules and can only quote.\n\nInstructions: Help more.\n\nInput: And again, please.","type":"output_text"}],"role":"assistant","status":"completed","type":"message"}],"output_text":"This is the offline model: it follows fixed rules and can only quote.\n\nInstructions: Help more.\n\nInput: And again, please.","running":false,"sources":[],"status":"completed","costs":{"internalCostUsd":0,"modelCostUsd":0.001049,"sandboxCostUsd":0,"toolCostUsd":0},"usage":{"cacheReadTokens":0,"cacheWriteTokens":0,"costUsd":0.001049,"inputTokens":1974,"outputTokens":31,"reasoningTokens":0,"steps":1,"totalTokens":2005,"credits":0.1049,"durationMs":1},"structured_output":null,"url":"http://127.0.0.1:60381/workers/wrk_01m84v4r092xd4sa8b2dnyjb0y","waitingFor":null}}','HTTP/1.0 200 OK
Content-Length: 2
Date: Mon, 23 Nov 2026 18:36:54 GMT
Server: BaseHTTP/0.6 Python/3.11.7

ok');
INSERT INTO "webhook_exchanges" VALUES(3,'POST /hook HTTP/1.1
Host: 127.0.0.1:40283
Content-Type: application/json
User-Agent: Journeyman/0.1.0
Webhook-Id: evt_01m84v4r4crmq7tqkw43h70wp8
Webhook-Signature: v1,ecHcPOcPkTAfTxAAVxxpAca5r0cMP2cLrMQ3vOJUQ0M=
Webhook-Timestamp: 1795459014
X-Service-Token: (hidden)

{"id":"evt_01m84v4r4crmq7tqkw43h70wp8","type":"task.failed","createdAt":"2026-11-23T18:36:54.803Z","task":{"id":"failed","completedAt":"2026-11-23T18:36:54.803Z","createdAt":"2026-11-23T18:36:54.796Z","createdByUserId":"usr_01m84v4qcnavvmzzdfrg4bydkz","organizationId":"org_01m84v4qcnjk8w462b84mv50vz","status":"error","title":"fail 400 no such thing","totals":{"credits":0,"durationMs":0,"turnCount":1},"triggeredBy":"api","url":"http://127.0.0.1:60381/tasks/failed","waitingFor":null,"workerId":"wrk_01m84v4r092xd4sa8b2dnyjb0y"},"turn":{"id":"trn_01m84v4r4crmq7tqkw43h70wp8","taskId":"failed","seq":0,"role":"assistant","status":"error","input":"```offline\nfail 400 no such thing\n```","outputText":"","inputTokens":0,"outputTokens":0,"credits":0,"durationMs":0,"startedAt":"2026-11-23T18:36:54.796Z","completedAt":"2026-11-23T18:36:54.803Z","structuredOutput":null,"waitingFor":null,"workerVersion":2},"worker":{"id":"wrk_01m84v4r092xd4sa8b2dnyjb0y","created_at":1795459014,"error":{"code":"400","message":"no such thing","retryable":false},"incomplete_details":null,"files":[],"messages":[{"id":"msg_01m84v4r4chzjxyf7xtt23q13j","role":"user","metadata":{"taskId":"failed","turnId":"trn_01m84v4r4crmq7tqkw43h70wp8","seq":0,"createdAt":"2026-11-23T18:36:54.796Z"},"parts":[{"type":"text","text":"```offline\nfail 400 no such thing\n```"}]},{"id":"msg_01m84v4r4c1tc5f908byt4gbf8","role":"assistant","metadata":{"taskId":"failed","turnId":"trn_01m84v4r4crmq7tqkw43h70wp8","seq":0,"createdAt":"2026-11-23T18:36:54.796Z","usage":{"cacheReadTokens":0,"cacheWriteTokens":0,"costUsd":0,"inputTokens":0,"outputTokens":0,"reasoningTokens":0,"steps":0,"totalTokens":0,"credits":0,"durationMs":0}},"parts":[{"type":"step-start"}]}],"metadata":{"taskId":"failed","turnId":"trn_01m84v4r4crmq7tqkw43h70wp8","turnStatus":"error","taskStatus":"error","triggeredBy":"api","budget":"standard","model":null},"object":"worker","output":[],"output_text":"","running":false,"sources":[],"status":"completed","costs":{"internalCostUsd":0,"modelCostUsd":0,"sandboxCostUsd":0,"toolCostUsd":0},"usage":{"cacheReadTokens":0,"cacheWriteTokens":0,"costUsd":0,"inputTokens":0,"outputTokens":0,"reasoningTokens":0,"steps":0,"totalTokens":0,"credits":0,"durationMs":0},"structured_output":null,"url":"http://127.0.0.1:60381/workers/wrk_01m84v4r092xd4sa8b2dnyjb0y","waitingFor":null}}','HTTP/1.0 500 Internal Server Error
Content-Length: 2
Date: Mon, 23 Nov 2026 18:36:54 GMT
Server: BaseHTTP/0.6 Python/3.11.7

ok');
INSERT INTO "webhook_exchanges" VALUES(4,'POST /hook HTTP/1.1
Host: 127.0.0.1:40283
Content-Type: application/json
User-Agent: Journeyman/0.1.0
Webhook-Id: evt_01m84v4r4zb6c7r01bknyvnthz
Webhook-Signature: v1,H0FM1n3CJ4Tbey/0ElkAFQz5JnPA32Nwu5Bp5w4I7T8=
Webhook-Timestamp: 1795459014
X-Service-Token: (hidden)

{"id":"evt_01m84v4r4zb6c7r01bknyvnthz","type":"task.completed","createdAt":"2026-11-23T18:36:54.870Z","task":{"id":"looked","completedAt":"2026-11-23T18:36:54.870Z","createdAt":"2026-11-23T18:36:54.814Z","createdByUserId":"usr_01m84v4qzy3c8s2j0rqs0584zz","organizationId":"org_01m84v4qcnjk8w462b84mv50vz","status":"completed","title":"Read http://127.0.0.1:40283/ and tell.","totals":{"credits":0.1966,"durationMs":51,"turnCount":1},"triggeredBy":"api","url":"http://127.0.0.1:60381/tasks/looked","waitingFor":null,"workerId":"wrk_01m84v4r092xd4sa8b2dnyjb0y"},"turn":{"id":"trn_01m84v4r4zb6c7r01bknyvnthz","taskId":"looked","seq":0,"role":"assistant","status":"completed","input":"Read http://127.0.0.1:40283/ and tell.","outputText":"The tide table of the harbour says nine.\n\nSource: Tide, http://127.0.0.1:40283/","inputTokens":3808,"outputTokens":31,"credits":0.1966,"durationMs":51,"startedAt":"2026-11-23T18:36:54.814Z","completedAt":"2026-11-23T18:36:54.870Z","structuredOutput":null,"waitingFor":null,"workerVersion":2},"worker":{"id":"wrk_01m84v4r092xd4sa8b2dnyjb0y","created_at":1795459014,"error":null,"incomplete_details":null,"files":[],"messages":[{"id":"msg_01m84v4r4zrmm2ga5kqdp2asax","role":"user","metadata":{"taskId":"looked","turnId":"trn_01m84v4r4zb6c7r01bknyvnthz","seq":0,"createdAt":"2026-11-23T18:36:54.814Z"},"parts":[{"type":"text","text":"Read http://127.0.0.1:40283/ and tell."}]},{"id":"msg_01m84v4r4z0rsgr0gdq6wqaf65","role":"assistant","metadata":{"taskId":"looked","turnId":"trn_01m84v4r4zb6c7r01bknyvnthz","seq":0,"createdAt":"2026-11-23T18:36:54.814Z","usage":{"cacheReadTokens":0,"cacheWriteTokens":0,"costUsd":0.001966,"inputTokens":3808,"outputTokens":31,"reasoningTokens":0,"steps":2,"totalTokens":3839,"credits":0.1966,"durationMs":51}},"parts":[{"type":"step-start"},{"type":"dynamic-tool","state":"output-available","toolName":"web_fetch","toolCallId":"call_1","input":{"url":"http://127.0.0.1:40283/"},"output":{"url":"http://127.0.0.1:40283/","title":"Tide","mediaType":"text/html","content":"The tide table of the harbour says nine."}},{"type":"step-start"},{"type":"text","text":"The tide table of the harbour says nine.\n\nSource: Tide, http://127.0.0.1:40283/","state":"done"},{"type":"source-url","sourceId":"src_01m84v4r52mgrjf07eq71ggj7x","url":"http://127.0.0.1:40283/","title":"Tide"}]}],"metadata":{"taskId":"looked","turnId":"trn_01m84v4r4zb6c7r01bknyvnthz","turnStatus":"completed","taskStatus":"completed","triggeredBy":"api","budget":"standard","model":"offline"},"object":"worker","output":[{"id":"msg_01m84v4r4z0rsgr0gdq6wqaf65","content":[{"text":"The tide table of the harbour says nine.\n\nSource: Tide, http://127.0.0.1:40283/","type":"output_text"}],"role":"assistant","status":"completed","type":"message"}],"output_text":"The tide table of the harbour says nine.\n\nSource: Tide, http://127.0.0.1:40283/","running":false,"sources":[{"id":"src_01m84v4r52mgrjf07eq71ggj7x","title":"Tide","type":"url","url":"http://127.0.0.1:40283/"}],"status":"completed","costs":{"internalCostUsd":0,"modelCostUsd":0.001966,"sandboxCostUsd":0,"toolCostUsd":0},"usage":{"cacheReadTokens":0,"cacheWriteTokens":0,"costUsd":0.001966,"inputTokens":3808,"outputTokens":31,"reasoningTokens":0,"steps":2,"totalTokens":3839,"credits":0.1966,"durationMs":51},"structured_output":null,"url":"http://127.0.0.1:60381/workers/wrk_01m84v4r092xd4sa8b2dnyjb0y","waitingFor":null}}','HTTP/1.0 200 OK
Content-Length: 2
Date: Mon, 23 Nov 2026 18:36:54 GMT
Server: BaseHTTP/0.6 Python/3.11.7

ok');
INSERT INTO "webhook_exchanges" VALUES(5,'POST /hook HTTP/1.1
Host: 127.0.0.1:40283
Content-Type: application/json
User-Agent: Journeyman/0.1.0
Webhook-Id: evt_01m84v4r7f6aq4whm0wmk3pvt9
Webhook-Signature: v1,jyzpTdAf4UPULNMqL8duPwBW43dTjRQmbm4BL1WvT5k=
Webhook-Timestamp: 1795459014
X-Service-Token: (hidden)

{"id":"evt_01m84v4r7f6aq4whm0wmk3pvt9","type":"task.waiting","createdAt":"2026-11-23T18:36:54.895Z","waiting":{"approvals":[{"id":"apr_01m84v4r7dan2yaxmjmvm3rwv3","kind":"question","question":"Which one?","choices":["a","b"],"toolCallId":"call_1","toolName":"ask_user","input":{"question":"Which one?","choices":["a","b"]}}]},"task":{"id":"question","completedAt":null,"createdAt":"2026-11-23T18:36:54.885Z","createdByUserId":"usr_01m84v4qcnavvmzzdfrg4bydkz","organizationId":"org_01m84v4qcnjk8w462b84mv50vz","status":"running","title":"tool ask_user {\"question\":\"Which one?\",\"choices\":[\"a\",\"b\"]}","totals":{"credits":0.0975,"durationMs":0,"turnCount":1},"triggeredBy":"api","url":"http://127.0.0.1:60381/tasks/question","waitingFor":{"for":"person","reason":null,"retryAt":null},"workerId":"wrk_01m84v4r092xd4sa8b2dnyjb0y"},"turn":{"id":"trn_01m84v4r75n4j2wjg9h6cbn94v","taskId":"question","seq":0,"role":"assistant","status":"running","input":"```offline\ntool ask_user {\"question\":\"Which one?\",\"choices\":[\"a\",\"b\"]}\nsay {{last}}\n```","outputText":"","inputTokens":1894,"outputTokens":14,"credits":0.0975,"durationMs":0,"startedAt":"2026-11-23T18:36:54.885Z","completedAt":null,"structuredOutput":null,"waitingFor":{"for":"person","reason":null,"retryAt":null},"workerVersion":2},"worker":{"id":"wrk_01m84v4r092xd4sa8b2dnyjb0y","created_at":1795459014,"error":null,"incomplete_details":null,"files":[],"messages":[{"id":"msg_01m84v4r75azpqcfyma2p80as1","role":"user","metadata":{"taskId":"question","turnId":"trn_01m84v4r75n4j2wjg9h6cbn94v","seq":0,"createdAt":"2026-11-23T18:36:54.885Z"},"parts":[{"type":"text","text":"```offline\ntool ask_user {\"question\":\"Which one?\",\"choices\":[\"a\",\"b\"]}\nsay {{last}}\n```"}]},{"id":"msg_01m84v4r752t1yyb88vx5e8358","role":"assistant","metadata":{"taskId":"question","turnId":"trn_01m84v4r75n4j2wjg9h6cbn94v","seq":0,"createdAt":"2026-11-23T18:36:54.885Z"},"parts":[{"type":"step-start"},{"type":"dynamic-tool","state":"input-available","toolName":"ask_user","toolCallId":"call_1","input":{"question":"Which one?","choices":["a","b"]}}]}],"metadata":{"taskId":"question","turnId":"trn_01m84v4r75n4j2wjg9h6cbn94v","turnStatus":"running","taskStatus":"running","triggeredBy":"api","budget":"standard","model":"offline","pendingApprovals":[{"id":"apr_01m84v4r7dan2yaxmjmvm3rwv3","kind":"question","question":"Which one?","choices":["a","b"],"toolCallId":"call_1","toolName":"ask_user","input":{"question":"Which one?","choices":["a","b"]}}]},"object":"worker","output":[],"output_text":"","running":true,"sources":[],"status":"running","costs":{"internalCostUsd":0,"modelCostUsd":0.000975,"sandboxCostUsd":0,"toolCostUsd":0},"usage":{"cacheReadTokens":0,"cacheWriteTokens":0,"costUsd":0.000975,"inputTokens":1894,"outputTokens":14,"reasoningTokens":0,"steps":1,"totalTokens":1908,"credits":0.0975,"durationMs":0},"structured_output":null,"url":"http://127.0.0.1:60381/workers/wrk_01m84v4r092xd4sa8b2dnyjb0y","waitingFor":{"for":"person","reason":null,"retryAt":null}}}','HTTP/1.0 500 Internal Server Error
Content-Length: 2
Date: Mon, 23 Nov 2026 18:36:54 GMT
Server: BaseHTTP/0.6 Python/3.11.7

ok');
INSERT INTO "webhook_exchanges" VALUES(6,'POST /hook HTTP/1.1
Host: 127.0.0.1:40283
Content-Type: application/json
User-Agent: Journeyman/0.1.0
Webhook-Id: evt_01m84v4r7fg6an8y0qfzkmsj2r
Webhook-Signature: v1,A1cZxsTpN8yLfz4jxcDxU8ei742LGxiPPAXUCmIR804=
Webhook-Timestamp: 1795459014
X-Service-Token: (hidden)

{"id":"evt_01m84v4r7fg6an8y0qfzkmsj2r","type":"task.completed","createdAt":"2026-11-23T18:36:54.955Z","task":{"id":"team","completedAt":"2026-11-23T18:36:54.955Z","createdAt":"2026-11-23T18:36:54.895Z","createdByUserId":"usr_01m84v4qcnavvmzzdfrg4bydkz","organizationId":"org_01m84v4qcnjk8w462b84mv50vz","status":"completed","title":"tool run_worker {\"worker\":\"wrk_01m84v4r0kpxtnges114cw4h82\",\"input\":\"What is it?…","totals":{"credits":0.20755,"durationMs":10,"turnCount":1},"triggeredBy":"api","url":"http://127.0.0.1:60381/tasks/team","waitingFor":null,"workerId":"wrk_01m84v4r092xd4sa8b2dnyjb0y"},"turn":{"id":"trn_01m84v4r7fg6an8y0qfzkmsj2r","taskId":"team","seq":0,"role":"assistant","status":"completed","input":"```offline\ntool run_worker {\"worker\":\"wrk_01m84v4r0kpxtnges114cw4h82\",\"input\":\"What is it?\"}\nsay {{last}}\n```","outputText":"{\"worker\":\"Careful\",\"task\":\"tsk_01m84v4r809xsdd4736dc17z12\",\"status\":\"completed\",\"output\":\"This is the offline model: it follows fixed rules and can only quote.\\n\\nInput: What is it?\",\"credits\":0.099}\n","inputTokens":3871,"outputTokens":70,"credits":0.20755,"durationMs":10,"startedAt":"2026-11-23T18:36:54.895Z","completedAt":"2026-11-23T18:36:54.955Z","structuredOutput":null,"waitingFor":null,"workerVersion":2},"worker":{"id":"wrk_01m84v4r092xd4sa8b2dnyjb0y","created_at":1795459014,"error":null,"incomplete_details":null,"files":[],"messages":[{"id":"msg_01m84v4r7f9q2wpdg9paj6fddg","role":"user","metadata":{"taskId":"team","turnId":"trn_01m84v4r7fg6an8y0qfzkmsj2r","seq":0,"createdAt":"2026-11-23T18:36:54.895Z"},"parts":[{"type":"text","text":"```offline\ntool run_worker {\"worker\":\"wrk_01m84v4r0kpxtnges114cw4h82\",\"input\":\"What is it?\"}\nsay {{last}}\n```"}]},{"id":"msg_01m84v4r7fzzdhbap2mwtg9mkf","role":"assistant","metadata":{"taskId":"team","turnId":"trn_01m84v4r7fg6an8y0qfzkmsj2r","seq":0,"createdAt":"2026-11-23T18:36:54.895Z","usage":{"cacheReadTokens":0,"cacheWriteTokens":0,"costUsd":0.0020755,"inputTokens":3871,"outputTokens":70,"reasoningTokens":0,"steps":2,"totalTokens":3941,"credits":0.20755,"durationMs":10}},"parts":[{"type":"step-start"},{"type":"dynamic-tool","state":"output-available","toolName":"run_worker","toolCallId":"call_1","input":{"worker":"wrk_01m84v4r0kpxtnges114cw4h82","input":"What is it?"},"output":{"worker":"Careful","task":"tsk_01m84v4r809xsdd4736dc17z12","status":"completed","output":"This is the offline model: it follows fixed rules and can only quote.\n\nInput: What is it?","credits":0.099}},{"type":"step-start"},{"type":"text","text":"{\"worker\":\"Careful\",\"task\":\"tsk_01m84v4r809xsdd4736dc17z12\",\"status\":\"completed\",\"output\":\"This is the offline model: it follows fixed rules and can only quote.\\n\\nInput: What is it?\",\"credits\":0.099}\n","state":"done"}]}],"metadata":{"taskId":"team","turnId":"trn_01m84v4r7fg6an8y0qfzkmsj2r","turnStatus":"completed","taskStatus":"completed","triggeredBy":"api","budget":"standard","model":"offline"},"object":"worker","output":[{"id":"msg_01m84v4r7fzzdhbap2mwtg9mkf","content":[{"text":"{\"worker\":\"Careful\",\"task\":\"tsk_01m84v4r809xsdd4736dc17z12\",\"status\":\"completed\",\"output\":\"This is the offline model: it follows fixed rules and can only quote.\\n\\nInput: What is it?\",\"credits\":0.099}\n","type":"output_text"}],"role":"assistant","status":"completed","type":"message"}],"output_text":"{\"worker\":\"Careful\",\"task\":\"tsk_01m84v4r809xsdd4736dc17z12\",\"status\":\"completed\",\"output\":\"This is the offline model: it follows fixed rules and can only quote.\\n\\nInput: What is it?\",\"credits\":0.099}\n","running":false,"sources":[],"status":"completed","costs":{"internalCostUsd":0,"modelCostUsd":0.0020755,"sandboxCostUsd":0,"toolCostUsd":0},"usage":{"cacheReadTokens":0,"cacheWriteTokens":0,"costUsd":0.0020755,"inputTokens":3871,"outputTokens":70,"reasoningTokens":0,"steps":2,"totalTokens":3941,"credits":0.20755,"durationMs":10},"structured_output":null,"url":"http://127.0.0.1:60381/workers/wrk_01m84v4r092xd4sa8b2dnyjb0y","waitingFor":null}}','HTTP/1.0 200 OK
Content-Length: 2
Date: Mon, 23 Nov 2026 18:36:54 GMT
Server: BaseHTTP/0.6 Python/3.11.7

ok');
INSERT INTO "webhook_exchanges" VALUES(7,'POST /hook HTTP/1.1
Host: 127.0.0.1:40283
Content-Type: application/json
User-Agent: Journeyman/0.1.0
Webhook-Id: evt_01m84v4r9rkg67z3ge8xyyb4f9
Webhook-Signature: v1,xIo6AtdJPk7kIxZ/u516+3dDAT9hkAUUrr05gP5Uuwo=
Webhook-Timestamp: 1795459014
X-Service-Token: (hidden)

{"id":"evt_01m84v4r9rkg67z3ge8xyyb4f9","type":"task.completed","createdAt":"2026-11-23T18:36:54.977Z","task":{"id":"team","completedAt":"2026-11-23T18:36:54.977Z","createdAt":"2026-11-23T18:36:54.895Z","createdByUserId":"usr_01m84v4qcnavvmzzdfrg4bydkz","organizationId":"org_01m84v4qcnjk8w462b84mv50vz","status":"completed","title":"tool run_worker {\"worker\":\"wrk_01m84v4r0kpxtnges114cw4h82\",\"input\":\"What is it?…","totals":{"credits":0.31505,"durationMs":12,"turnCount":2},"triggeredBy":"api","url":"http://127.0.0.1:60381/tasks/team","waitingFor":null,"workerId":"wrk_01m84v4r092xd4sa8b2dnyjb0y"},"turn":{"id":"trn_01m84v4r9rkg67z3ge8xyyb4f9","taskId":"team","seq":1,"role":"assistant","status":"completed","input":"Continue, please.","outputText":"This is the offline model: it follows fixed rules and can only quote.\n\nInstructions: Help more.\n\nInput: Continue, please.","inputTokens":2026,"outputTokens":31,"credits":0.1075,"durationMs":2,"startedAt":"2026-11-23T18:36:54.968Z","completedAt":"2026-11-23T18:36:54.977Z","structuredOutput":null,"waitingFor":null,"workerVersion":2},"worker":{"id":"wrk_01m84v4r092xd4sa8b2dnyjb0y","created_at":1795459014,"error":null,"incomplete_details":null,"files":[],"messages":[{"id":"msg_01m84v4r7f9q2wpdg9paj6fddg","role":"user","metadata":{"taskId":"team","turnId":"trn_01m84v4r7fg6an8y0qfzkmsj2r","seq":0,"createdAt":"2026-11-23T18:36:54.895Z"},"parts":[{"type":"text","text":"```offline\ntool run_worker {\"worker\":\"wrk_01m84v4r0kpxtnges114cw4h82\",\"input\":\"What is it?\"}\nsay {{last}}\n```"}]},{"id":"msg_01m84v4r7fzzdhbap2mwtg9mkf","role":"assistant","metadata":{"taskId":"team","turnId":"trn_01m84v4r7fg6an8y0qfzkmsj2r","seq":0,"createdAt":"2026-11-23T18:36:54.895Z","usage":{"cacheReadTokens":0,"cacheWriteTokens":0,"costUsd":0.0020755,"inputTokens":3871,"outputTokens":70,"reasoningTokens":0,"steps":2,"totalTokens":3941,"credits":0.20755,"durationMs":10}},"parts":[{"type":"step-start"},{"type":"dynamic-tool","state":"output-available","toolName":"run_worker","toolCallId":"call_1","input":{"worker":"wrk_01m84v4r0kpxtnges114cw4h82","input":"What is it?"},"output":{"worker":"Careful","task":"tsk_01m84v4r809xsdd4736dc17z12","status":"completed","output":"This is the offline model: it follows fixed rules and can only quote.\n\nInput: What is it?","credits":0.099}},{"type":"step-start"},{"type":"text","text":"{\"worker\":\"Careful\",\"task\":\"tsk_01m84v4r809xsdd4736dc17z12\",\"status\":\"completed\",\"output\":\"This is the offline model: it follows fixed rules and can only quote.\\n\\nInput: What is it?\",\"credits\":0.099}\n","state":"done"}]},{"id":"msg_01m84v4r9rczgncb5cvzdbr031","role":"user","metadata":{"taskId":"team","turnId":"trn_01m84v4r9rkg67z3ge8xyyb4f9","seq":1,"createdAt":"2026-11-23T18:36:54.968Z"},"parts":[{"type":"text","text":"Continue, please."}]},{"id":"msg_01m84v4r9r0531apfzf97n9cjm","role":"assistant","metadata":{"taskId":"team","turnId":"trn_01m84v4r9rkg67z3ge8xyyb4f9","seq":1,"createdAt":"2026-11-23T18:36:54.968Z","usage":{"cacheReadTokens":0,"cacheWriteTokens":0,"costUsd":0.001075,"inputTokens":2026,"outputTokens":31,"reasoningTokens":0,"steps":1,"totalTokens":2057,"credits":0.1075,"durationMs":2}},"parts":[{"type":"step-start"},{"type":"text","text":"This is the offline model: it follows fixed rules and can only quote.\n\nInstructions: Help more.\n\nInput: Continue, please.","state":"done"}]}],"metadata":{"taskId":"team","turnId":"trn_01m84v4r9rkg67z3ge8xyyb4f9","turnStatus":"completed","taskStatus":"completed","triggeredBy":"api","budget":"standard","model":"offline"},"object":"worker","output":[{"id":"msg_01m84v4r9r0531apfzf97n9cjm","content":[{"text":"This is the offline model: it follows fixed rules and can only quote.\n\nInstructions: Help more.\n\nInput: Continue, please.","type":"output_text"}],"role":"assistant","status":"completed","type":"message"}],"output_text":"This is the offline model: it follows fixed rules and can only quote.\n\nInstructions: Help more.\n\nInput: Continue, please.","running":false,"sources":[],"status":"completed","costs":{"internalCostUsd":0,"modelCostUsd":0.001075,"sandboxCostUsd":0,"toolCostUsd":0},"usage":{"cacheReadTokens":0,"cacheWriteTokens":0,"costUsd":0.001075,"inputTokens":2026,"outputTokens":31,"reasoningTokens":0,"steps":1,"totalTokens":2057,"credits":0.1075,"durationMs":2},"structured_output":null,"url":"http://127.0.0.1:60381/workers/wrk_01m84v4r092xd4sa8b2dnyjb0y","waitingFor":null}}','HTTP/1.0 500 Internal Server Error
Content-Length: 2
Date: Mon, 23 Nov 2026 18:36:54 GMT
Server: BaseHTTP/0.6 Python/3.11.7

ok');
INSERT INTO "webhook_exchanges" VALUES(8,'POST /hook HTTP/1.1
Host: 127.0.0.1:40283
Content-Type: application/json
User-Agent: Journeyman/0.1.0
Webhook-Id: evt_01m84v4ran9bbpj5k950xxdzjf
Webhook-Signature: v1,R7Y9Whulzu5+ylQYCGPEtncCvqEUvrynQEV3LFDKUxU=
Webhook-Timestamp: 1795459015
X-Service-Token: (hidden)

{"id":"evt_01m84v4ran9bbpj5k950xxdzjf","type":"task.completed","createdAt":"2026-11-23T18:36:55.003Z","task":{"id":"tsk_01m84v4ran3n3wj2vkv36w9zf8","completedAt":"2026-11-23T18:36:55.002Z","createdAt":"2026-11-23T18:36:54.997Z","createdByUserId":null,"organizationId":"org_01m84v4qcnjk8w462b84mv50vz","status":"completed","title":"Hi","totals":{"credits":0.0569,"durationMs":1,"turnCount":1},"triggeredBy":"email","url":"http://127.0.0.1:60381/tasks/tsk_01m84v4ran3n3wj2vkv36w9zf8","waitingFor":null,"workerId":"wrk_01m84v4r092xd4sa8b2dnyjb0y"},"turn":{"id":"trn_01m84v4ran9bbpj5k950xxdzjf","taskId":"tsk_01m84v4ran3n3wj2vkv36w9zf8","seq":0,"role":"assistant","status":"completed","input":"Hello?","outputText":"This is the offline model: it follows fixed rules and can only quote.\n\nInstructions: Help more.\n\nInput: Hello?","inputTokens":1026,"outputTokens":28,"credits":0.0569,"durationMs":1,"startedAt":"2026-11-23T18:36:54.999Z","completedAt":"2026-11-23T18:36:55.002Z","structuredOutput":null,"waitingFor":null,"workerVersion":2},"worker":{"id":"wrk_01m84v4r092xd4sa8b2dnyjb0y","created_at":1795459014,"error":null,"incomplete_details":null,"files":[],"messages":[{"id":"msg_01m84v4ranx835jjmeke47exme","role":"user","metadata":{"taskId":"tsk_01m84v4ran3n3wj2vkv36w9zf8","turnId":"trn_01m84v4ran9bbpj5k950xxdzjf","seq":0,"createdAt":"2026-11-23T18:36:54.997Z"},"parts":[{"type":"text","text":"Hello?"}]},{"id":"msg_01m84v4ranmxcnpwr732dxksc8","role":"assistant","metadata":{"taskId":"tsk_01m84v4ran3n3wj2vkv36w9zf8","turnId":"trn_01m84v4ran9bbpj5k950xxdzjf","seq":0,"createdAt":"2026-11-23T18:36:54.997Z","usage":{"cacheReadTokens":0,"cacheWriteTokens":0,"costUsd":0.000569,"inputTokens":1026,"outputTokens":28,"reasoningTokens":0,"steps":1,"totalTokens":1054,"credits":0.0569,"durationMs":1}},"parts":[{"type":"step-start"},{"type":"text","text":"This is the offline model: it follows fixed rules and can only quote.\n\nInstructions: Help more.\n\nInput: Hello?","state":"done"}]}],"metadata":{"taskId":"tsk_01m84v4ran3n3wj2vkv36w9zf8","turnId":"trn_01m84v4ran9bbpj5k950xxdzjf","turnStatus":"completed","taskStatus":"completed","triggeredBy":"email","budget":"standard","model":"offline"},"object":"worker","output":[{"id":"msg_01m84v4ranmxcnpwr732dxksc8","content":[{"text":"This is the offline model: it follows fixed rules and can only quote.\n\nInstructions: Help more.\n\nInput: Hello?","type":"output_text"}],"role":"assistant","status":"completed","type":"message"}],"output_text":"This is the offline model: it follows fixed rules and can only quote.\n\nInstructions: Help more.\n\nInput: Hello?","running":false,"sources":[],"status":"completed","costs":{"internalCostUsd":0,"modelCostUsd":0.000569,"sandboxCostUsd":0,"toolCostUsd":0},"usage":{"cacheReadTokens":0,"cacheWriteTokens":0,"costUsd":0.000569,"inputTokens":1026,"outputTokens":28,"reasoningTokens":0,"steps":1,"totalTokens":1054,"credits":0.0569,"durationMs":1},"structured_output":null,"url":"http://127.0.0.1:60381/workers/wrk_01m84v4r092xd4sa8b2dnyjb0y","waitingFor":null}}','HTTP/1.0 200 OK
Content-Length: 2
Date: Mon, 23 Nov 2026 18:36:55 GMT
Server: BaseHTTP/0.6 Python/3.11.7

ok');
INSERT INTO "webhook_executions" VALUES(1,'whe_01m84v4r3dpkf907y0xgdnm1k1',1,1,1,'http://127.0.0.1:40283/hook','error',500,'the endpoint answered 500 Internal Server Error',2,1795459014763);
INSERT INTO "webhook_executions" VALUES(2,'whe_01m84v4r46jcvvvf77xn5pavma',1,2,2,'http://127.0.0.1:40283/hook','success',200,NULL,15,1795459014775);
INSERT INTO "webhook_executions" VALUES(3,'whe_01m84v4r4sxpnmv0kwk44xyzty',1,3,3,'http://127.0.0.1:40283/hook','error',500,'the endpoint answered 500 Internal Server Error',3,1795459014805);
INSERT INTO "webhook_executions" VALUES(4,'whe_01m84v4r701mx00rbd7rf5dma2',1,4,4,'http://127.0.0.1:40283/hook','success',200,NULL,7,1795459014872);
INSERT INTO "webhook_executions" VALUES(5,'whe_01m84v4r7tjpwjatmk5f3h82q3',1,5,5,'http://127.0.0.1:40283/hook','error',500,'the endpoint answered 500 Internal Server Error',2,1795459014903);
INSERT INTO "webhook_executions" VALUES(6,'whe_01m84v4r9sr59cp2tw4km177v1',1,6,6,'http://127.0.0.1:40283/hook','success',200,NULL,10,1795459014957);
INSERT INTO "webhook_executions" VALUES(7,'whe_01m84v4ra6akfrkyvqqyx41ht2',1,7,7,'http://127.0.0.1:40283/hook','error',500,'the endpoint answered 500 Internal Server Error',2,1795459014979);
INSERT INTO "webhook_executions" VALUES(8,'whe_01m84v4rb0241k8wcmhjrch0f5',1,8,8,'http://127.0.0.1:40283/hook','success',200,NULL,3,1795459015004);
INSERT INTO "webhooks" VALUES('wrk_01m84v4r092xd4sa8b2dnyjb0y','http://127.0.0.1:40283/hook','whk_IfVAhuZcf_3RikU3X_I_0UV1vpSYKA8myNhdtTW8qBk','whsec_/cVdP7SILxrcEhuQqryG0+REt877ZM4M0f5vWR+CJiQ=',1795459014677,1795459014677);
INSERT INTO "webhooks" VALUES('wrk_01m84v4rpxjz6e2n4tc1mm36er','http://127.0.0.1:40283/hook','whk_xyrIkBk6jqTZeUt1Xz2nzUmP3JbCvVt-V9BkONppS4Y','whsec_ty/vQYmU2+M1E3Elg9SR7uMcc3nFdYlnnuqRxeWj9hk=',1795459015409,1795459015409);
INSERT INTO "worker_members" VALUES('wrk_01m84v4r0edk31g6gd6ycvsmrn','usr_01m84v4qzy3c8s2j0rqs0584zz',1795459014673);
INSERT INTO "worker_members" VALUES('wrk_01m84v4rp5hz98h5g63g45j9eg','usr_01m84v4qzy3c8s2j0rqs0584zz',1795459015373);
INSERT INTO "worker_pins" VALUES('org_01m84v4qcnjk8w462b84mv50vz','usr_01m84v4qcnavvmzzdfrg4bydkz','wrk_01m84v4rrrpk8t2kfhyfc29dwz',1795459015456);
INSERT INTO "worker_versions" VALUES('wrk_01m84v4r092xd4sa8b2dnyjb0y',1,'Help.',NULL,NULL,'[]','[]',1795459014665,NULL,NULL,'usr_01m84v4qcnavvmzzdfrg4bydkz',NULL);
INSERT INTO "worker_versions" VALUES('wrk_01m84v4r092xd4sa8b2dnyjb0y',2,'Help more.',NULL,NULL,'[]','[]',1795459014668,NULL,NULL,'usr_01m84v4qcnavvmzzdfrg4bydkz',NULL);
INSERT INTO "worker_versions" VALUES('wrk_01m84v4r0edk31g6gd6ycvsmrn',1,'','{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}',NULL,'[]','[]',1795459014670,'["read_file","list_files"]',NULL,'usr_01m84v4qcnavvmzzdfrg4bydkz',NULL);
INSERT INTO "worker_versions" VALUES('wrk_01m84v4r0kpxtnges114cw4h82',1,'',NULL,NULL,'["write_file"]','[]',1795459014675,NULL,NULL,'usr_01m84v4qcnavvmzzdfrg4bydkz',NULL);
INSERT INTO "worker_versions" VALUES('wrk_01m84v4raw7rk450jdcmw3e4fc',1,'made by a task: plain',NULL,NULL,'[]','[]',1795459015004,NULL,NULL,'usr_01m84v4qcnavvmzzdfrg4bydkz',NULL);
INSERT INTO "worker_versions" VALUES('wrk_01m84v4rb1xkmy70my781a0d5c',1,'# made by a task: with a second turn

Do it.',NULL,NULL,'[]','[]',1795459015009,NULL,NULL,'usr_01m84v4qcnavvmzzdfrg4bydkz',NULL);
INSERT INTO "worker_versions" VALUES('wrk_01m84v4rbbw6j4yjqwqj8w8csw',1,'```offline
say made by a task: a script
```',NULL,NULL,'[]','[]',1795459015019,NULL,NULL,'usr_01m84v4qcnavvmzzdfrg4bydkz',NULL);
INSERT INTO "worker_versions" VALUES('wrk_01m84v4rbf05rtxmmkwkwpap7k',1,'made by a task: failed
```offline
fail 400 no
```',NULL,NULL,'[]','[]',1795459015023,NULL,NULL,'usr_01m84v4qcnavvmzzdfrg4bydkz',NULL);
INSERT INTO "worker_versions" VALUES('wrk_01m84v4rbkedbwmxrn8825pqyc',1,'made by a task: of a member',NULL,NULL,'[]','[]',1795459015027,NULL,NULL,'usr_01m84v4qzy3c8s2j0rqs0584zz',NULL);
INSERT INTO "worker_versions" VALUES('wrk_01m84v4rbt67f4wev8qkara36y',1,'made by a task: cancelled
```offline
wait 20s
```',NULL,NULL,'[]','[]',1795459015034,NULL,NULL,'usr_01m84v4qcnavvmzzdfrg4bydkz',NULL);
INSERT INTO "worker_versions" VALUES('wrk_01m84v4rnkg5j6q2d3mnmqneht',1,'kept: edited',NULL,NULL,'[]','[]',1795459015347,NULL,NULL,'usr_01m84v4qcnavvmzzdfrg4bydkz',NULL);
INSERT INTO "worker_versions" VALUES('wrk_01m84v4rnxhkgqwjmr8zyg4qb4',1,'kept: title changed',NULL,NULL,'[]','[]',1795459015357,NULL,NULL,'usr_01m84v4qcnavvmzzdfrg4bydkz',NULL);
INSERT INTO "worker_versions" VALUES('wrk_01m84v4rp5hz98h5g63g45j9eg',1,'kept: private',NULL,NULL,'[]','[]',1795459015365,NULL,NULL,'usr_01m84v4qcnavvmzzdfrg4bydkz',NULL);
INSERT INTO "worker_versions" VALUES('wrk_01m84v4rpfetet4qjb0x37akpf',1,'kept: scheduled',NULL,NULL,'[]','[]',1795459015375,NULL,NULL,'usr_01m84v4qcnavvmzzdfrg4bydkz',NULL);
INSERT INTO "worker_versions" VALUES('wrk_01m84v4rpxjz6e2n4tc1mm36er',1,'kept: with a webhook',NULL,NULL,'[]','[]',1795459015389,NULL,NULL,'usr_01m84v4qcnavvmzzdfrg4bydkz',NULL);
INSERT INTO "worker_versions" VALUES('wrk_01m84v4rqmwh03xqx3xqket88a',1,'kept: with a secret',NULL,NULL,'[]','[]',1795459015412,NULL,NULL,'usr_01m84v4qcnavvmzzdfrg4bydkz',NULL);
INSERT INTO "worker_versions" VALUES('wrk_01m84v4rqwcp4zbs1p0x8005fm',1,'kept: used again',NULL,NULL,'[]','[]',1795459015420,NULL,NULL,'usr_01m84v4qcnavvmzzdfrg4bydkz',NULL);
INSERT INTO "worker_versions" VALUES('wrk_01m84v4rr9scwkcs3mv33ktndq',1,'kept: by mail',NULL,NULL,'[]','[]',1795459015433,NULL,NULL,'usr_01m84v4qcnavvmzzdfrg4bydkz',NULL);
INSERT INTO "worker_versions" VALUES('wrk_01m84v4rrrpk8t2kfhyfc29dwz',1,'kept: pinned',NULL,NULL,'[]','[]',1795459015448,NULL,NULL,'usr_01m84v4qcnavvmzzdfrg4bydkz',NULL);
INSERT INTO "worker_versions" VALUES('wrk_01m84v4rtt8hvvqn1dak8atvnv',1,'',NULL,NULL,'[]','[]',1795459015514,NULL,NULL,'usr_01m84v4qcnavvmzzdfrg4bydkz',NULL);
INSERT INTO "worker_versions" VALUES('wrk_01m84v4rvggeywp83jbttnmfcx',1,'kept: run at once',NULL,NULL,'[]','[]',1795459015536,NULL,NULL,'usr_01m84v4qcnavvmzzdfrg4bydkz',NULL);
INSERT INTO "worker_versions" VALUES('wrk_01m84v4rw5syfhk3h12ns9ezr2',1,'kept: run on a page',NULL,NULL,'[]','[]',1795459015557,NULL,NULL,'usr_01m84v4qcnavvmzzdfrg4bydkz',NULL);
INSERT INTO "worker_versions" VALUES('wrk_01m84v4rx2d2y2vm9xz11zxxas',1,'made by a task: deleted',NULL,NULL,'[]','[]',1795459015586,NULL,NULL,'usr_01m84v4qcnavvmzzdfrg4bydkz',NULL);
INSERT INTO "workers" VALUES(1,'wrk_01m84v4r092xd4sa8b2dnyjb0y','org_01m84v4qcnjk8w462b84mv50vz','usr_01m84v4qcnavvmzzdfrg4bydkz','Scribe','Writes','public',2,1795459014665,1795459014668,NULL,'shared',0);
INSERT INTO "workers" VALUES(2,'wrk_01m84v4r0edk31g6gd6ycvsmrn','org_01m84v4qcnjk8w462b84mv50vz','usr_01m84v4qcnavvmzzdfrg4bydkz','Closed','','private',1,1795459014670,1795459014670,NULL,'shared',NULL);
INSERT INTO "workers" VALUES(3,'wrk_01m84v4r0kpxtnges114cw4h82','org_01m84v4qcnjk8w462b84mv50vz','usr_01m84v4qcnavvmzzdfrg4bydkz','Careful','','public',1,1795459014675,1795459014675,NULL,'task',NULL);
INSERT INTO "workers" VALUES(4,'wrk_01m84v4raw7rk450jdcmw3e4fc','org_01m84v4qcnjk8w462b84mv50vz','usr_01m84v4qcnavvmzzdfrg4bydkz','made by a task: plain','','public',1,1795459015004,1795459015004,NULL,'shared',NULL);
INSERT INTO "workers" VALUES(5,'wrk_01m84v4rb1xkmy70my781a0d5c','org_01m84v4qcnjk8w462b84mv50vz','usr_01m84v4qcnavvmzzdfrg4bydkz','made by a task: with a second turn','','public',1,1795459015009,1795459015009,NULL,'shared',NULL);
INSERT INTO "workers" VALUES(6,'wrk_01m84v4rbbw6j4yjqwqj8w8csw','org_01m84v4qcnjk8w462b84mv50vz','usr_01m84v4qcnavvmzzdfrg4bydkz','say made by a task: a script','','public',1,1795459015019,1795459015019,NULL,'shared',NULL);
INSERT INTO "workers" VALUES(7,'wrk_01m84v4rbf05rtxmmkwkwpap7k','org_01m84v4qcnjk8w462b84mv50vz','usr_01m84v4qcnavvmzzdfrg4bydkz','made by a task: failed','','public',1,1795459015023,1795459015023,NULL,'shared',NULL);
INSERT INTO "workers" VALUES(8,'wrk_01m84v4rbkedbwmxrn8825pqyc','org_01m84v4qcnjk8w462b84mv50vz','usr_01m84v4qzy3c8s2j0rqs0584zz','made by a task: of a member','','public',1,1795459015027,1795459015027,NULL,'shared',NULL);
INSERT INTO "workers" VALUES(9,'wrk_01m84v4rbt67f4wev8qkara36y','org_01m84v4qcnjk8w462b84mv50vz','usr_01m84v4qcnavvmzzdfrg4bydkz','made by a task: cancelled','','public',1,1795459015034,1795459015034,NULL,'shared',NULL);
INSERT INTO "workers" VALUES(10,'wrk_01m84v4rnkg5j6q2d3mnmqneht','org_01m84v4qcnjk8w462b84mv50vz','usr_01m84v4qcnavvmzzdfrg4bydkz','kept: edited','Mine','public',1,1795459015347,1795459015355,NULL,'shared',NULL);
INSERT INTO "workers" VALUES(11,'wrk_01m84v4rnxhkgqwjmr8zyg4qb4','org_01m84v4qcnjk8w462b84mv50vz','usr_01m84v4qcnavvmzzdfrg4bydkz','kept: another title','','public',1,1795459015357,1795459015363,NULL,'shared',NULL);
INSERT INTO "workers" VALUES(12,'wrk_01m84v4rp5hz98h5g63g45j9eg','org_01m84v4qcnjk8w462b84mv50vz','usr_01m84v4qcnavvmzzdfrg4bydkz','kept: private','','private',1,1795459015365,1795459015372,NULL,'shared',NULL);
INSERT INTO "workers" VALUES(13,'wrk_01m84v4rpfetet4qjb0x37akpf','org_01m84v4qcnjk8w462b84mv50vz','usr_01m84v4qcnavvmzzdfrg4bydkz','kept: scheduled','','public',1,1795459015375,1795459015375,NULL,'shared',NULL);
INSERT INTO "workers" VALUES(14,'wrk_01m84v4rpxjz6e2n4tc1mm36er','org_01m84v4qcnjk8w462b84mv50vz','usr_01m84v4qcnavvmzzdfrg4bydkz','kept: with a webhook','','public',1,1795459015389,1795459015389,NULL,'shared',NULL);
INSERT INTO "workers" VALUES(15,'wrk_01m84v4rqmwh03xqx3xqket88a','org_01m84v4qcnjk8w462b84mv50vz','usr_01m84v4qcnavvmzzdfrg4bydkz','kept: with a secret','','public',1,1795459015412,1795459015412,NULL,'shared',NULL);
INSERT INTO "workers" VALUES(16,'wrk_01m84v4rqwcp4zbs1p0x8005fm','org_01m84v4qcnjk8w462b84mv50vz','usr_01m84v4qcnavvmzzdfrg4bydkz','kept: used again','','public',1,1795459015420,1795459015420,NULL,'shared',NULL);
INSERT INTO "workers" VALUES(17,'wrk_01m84v4rr9scwkcs3mv33ktndq','org_01m84v4qcnjk8w462b84mv50vz','usr_01m84v4qcnavvmzzdfrg4bydkz','kept: by mail','','public',1,1795459015433,1795459015433,NULL,'shared',NULL);
INSERT INTO "workers" VALUES(18,'wrk_01m84v4rrrpk8t2kfhyfc29dwz','org_01m84v4qcnjk8w462b84mv50vz','usr_01m84v4qcnavvmzzdfrg4bydkz','kept: pinned','','public',1,1795459015448,1795459015448,NULL,'shared',NULL);
INSERT INTO "workers" VALUES(19,'wrk_01m84v4rtt8hvvqn1dak8atvnv','org_01m84v4qcnjk8w462b84mv50vz','usr_01m84v4qcnavvmzzdfrg4bydkz','kept: created with an input','','public',1,1795459015514,1795459015514,NULL,'shared',NULL);
INSERT INTO "workers" VALUES(20,'wrk_01m84v4rvggeywp83jbttnmfcx','org_01m84v4qcnjk8w462b84mv50vz','usr_01m84v4qcnavvmzzdfrg4bydkz','kept: created','','public',1,1795459015536,1795459015536,NULL,'shared',NULL);
INSERT INTO "workers" VALUES(21,'wrk_01m84v4rw5syfhk3h12ns9ezr2','org_01m84v4qcnjk8w462b84mv50vz','usr_01m84v4qcnavvmzzdfrg4bydkz','kept: run on a page','','public',1,1795459015557,1795459015557,NULL,'shared',NULL);
INSERT INTO "workers" VALUES(22,'wrk_01m84v4rx2d2y2vm9xz11zxxas','org_01m84v4qcnjk8w462b84mv50vz','usr_01m84v4qcnavvmzzdfrg4bydkz','made by a task: deleted','','public',1,1795459015586,1795459015586,1795459015593,'shared',NULL);
